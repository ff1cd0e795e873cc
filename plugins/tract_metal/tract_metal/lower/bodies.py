"""Models inside of operators, recorded as part of the model around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np

from tract_core.dims import Dim
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_metal.compile import MetalTarget, compiled
from tract_metal.elements import to_mlx, written_in
from tract_metal.recording import Recording
from tract_metal.segments import Hosted, Segment
from tract_metal.site import Site


class Unfit(Exception):
    """A body has something that MLX does not compute; the text says what."""


@dataclass(slots=True)
class MadeInside:
    """The ``weights`` of a body on the device, the same whenever it is recorded; ``made``: as for a `Site`."""

    weights: dict[OutletId, mx.array] = field(default_factory=dict[OutletId, mx.array])
    made: dict[tuple[int, ...], Any] = field(default_factory=dict[tuple[int, ...], Any])


@frozen
class Body:
    """A model that MLX computes all of. ``segments``: one, or none where nothing is computed."""

    model: TypedModel
    segments: tuple[Segment, ...]

    @staticmethod
    def of(model: TypedModel, sizes: Mapping[str, Dim]) -> Body:
        """``sizes``: what its symbols are in the model around. Raises Unfit."""
        try:
            body = model.substitute(sizes)
            pieces = compiled(body, MetalTarget()).pieces
        except TractError as error:
            raise Unfit(f"in its body: {error.problem}") from None
        segments = list[Segment]()
        for piece in pieces:
            if isinstance(piece, Hosted):
                raise Unfit(f"in its body, node {piece.node.name!r}: {piece.why}")
            if piece.keeps:
                raise Unfit("its body keeps state")
            segments.append(piece)
        return Body(body, tuple(segments))

    def recorded(self, site: Site, inputs: Sequence[mx.array]) -> list[mx.array]:
        """What it gives, for certain sizes. What is wrong there is wrong at the site."""
        if any(condition.holds() != 1 for condition, _ in self.model.conditions):
            site.refuse_where(mx.array(True))
        made = site.once(MadeInside)
        values = self._weights(made) | dict(zip(self.model.inputs, inputs, strict=True))
        recording = Recording(self.model, {}, values, made=made.made)
        for segment in self.segments:
            for group in segment.groups:
                recording.add(group)
        site.refusals += recording.refusals
        return [recording.values[outlet].in_order for outlet in self.model.outputs]

    def _weights(self, made: MadeInside) -> dict[OutletId, mx.array]:
        """What is part of the body, and read there or given: made when it is first wanted."""
        read = (outlet for segment in self.segments for outlet in segment.weights)
        found = dict[OutletId, mx.array]()
        for outlet in (*read, *self.model.outputs):
            array = self.model.outlet_fact(outlet).constant
            if array is not None and array.size == 1:
                found[outlet] = written_in(array)
            elif array is not None:
                if outlet not in made.weights:
                    made.weights[outlet] = to_mlx(np.ascontiguousarray(array))
                found[outlet] = made.weights[outlet]
        return found
