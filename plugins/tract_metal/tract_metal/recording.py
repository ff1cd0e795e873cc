"""A segment while MLX records it: for certain sizes, what each group gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import mlx.core as mx

from tract_core.compile.groups import Group
from tract_core.errors import RunError, TractError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_metal.compile import way
from tract_metal.elements import element_of
from tract_metal.layout import Laid
from tract_metal.segments import Segment
from tract_metal.site import Computed, Keeping, Site, Wants, as_sequence

NOTHING: Final[Mapping[int, Sequence[mx.array]]] = {}
"""Of nodes that keep nothing yet."""


class Recording:
    """``refusals``: what is true where the turn turns out to be wrong. ``values``: of the tensors so far.

    ``kept``: what nodes kept in the turn before; then, of those that were computed, what they keep now.
    """

    def __init__(
        self,
        model: TypedModel,
        symbols: Mapping[str, int],
        values: Mapping[OutletId, mx.array],
        kept: Mapping[int, Sequence[mx.array]] = NOTHING,
        made: dict[tuple[int, ...], Any] | None = None,
    ) -> None:
        """``made``: what was made of weights, as for a `Site`."""
        self.model, self.symbols, self.kept, self.made = model, symbols, dict(kept), made
        self.values = {outlet: Laid.plain(array) for outlet, array in values.items()}
        self.refusals: list[mx.array] = []

    def add(self, group: Group) -> None:
        """Have what a group gives among the values."""
        site = Site(self.model, group, self.symbols, self.made)
        node = self.model.nodes[group.nodes[0]]
        try:
            found = way(site)
            if isinstance(found, str):
                raise RunError(f"for these sizes, {found}")
            given = self._given(found, node.id, [self.values[outlet] for outlet in site.inputs])
        except TractError as error:
            raise error.at(f"node {node.name!r} ({node.op.name})") from error.__cause__
        for outlet, one in zip(site.outputs, given, strict=True):
            kind = element_of(self.model.outlet_fact(outlet).datum_type)
            assert kind == one.array.dtype, f"{node.op.name} gives {one.array.dtype}, wanted {kind}"
            self.values[outlet] = one
        self.refusals += site.refusals

    def _given(self, found: Any, node: int, inputs: Sequence[Laid]) -> Sequence[Laid]:
        if not isinstance(found, Keeping):
            return _called(found if isinstance(found, Computed) else Computed(found), inputs)
        given, kept = found.step(self.kept.get(node), *(one.in_order for one in inputs))
        self.kept[node] = list(kept)
        return [Laid.plain(one) for one in given]


def _called(how: Computed, values: Sequence[Laid]) -> Sequence[Laid]:
    if how.wants is Wants.LAID:
        return as_sequence(how.function(*values))
    order = _common_order(values) if how.wants is Wants.ANY_ORDER else None
    if order is None:
        return [Laid.plain(one) for one in as_sequence(how.function(*(value.in_order for value in values)))]
    given = as_sequence(how.function(*(value.as_laid(order) for value in values)))
    return [Laid(one, order) for one in given]


def _common_order(values: Sequence[Laid]) -> tuple[int, ...] | None:
    """The order of the largest tensor, for all of its rank; ``None`` where they differ in rank."""
    largest = max(values, key=lambda one: one.array.size, default=None)
    if largest is None or any(one.array.ndim != largest.array.ndim for one in values):
        return None
    return largest.order


@dataclass(slots=True)
class Recorded:
    """A segment for certain sizes, as a function of MLX.

    It takes arrays in the order of ``reads``, then those of ``weights``, then what nodes kept; it gives those of
    ``gives``, then what nodes keep, then, where ``refuses``, a number that is true where the turn is wrong. What it
    gives is known once MLX has recorded it. ``kept``, ``keeps``: how many arrays each node kept, and keeps; ``made``:
    what was made of weights.

    Weights are inputs, as MLX writes arrays of one element that it knows into its kernels, as texts, and -0.0 loses its
    sign there.
    """

    model: TypedModel
    segment: Segment
    symbols: Mapping[str, int]
    kept: Mapping[int, int]
    made: dict[tuple[int, ...], Any]
    keeps: dict[int, int] = field(default_factory=dict[int, int])
    refuses: bool = False

    def __call__(self, *arrays: mx.array) -> list[mx.array]:
        """Record it, or compute it at once."""
        given = iter(arrays)
        values = {outlet: next(given) for outlet in (*self.segment.reads, *self.segment.weights)}
        kept = {node: [next(given) for _ in range(count)] for node, count in self.kept.items()}
        recording = Recording(self.model, self.symbols, values, kept, self.made)
        for group in self.segment.groups:
            recording.add(group)
        found = [recording.values[outlet].in_order for outlet in self.segment.gives]
        self.keeps = {node: len(recording.kept[node]) for node in self.segment.keeps}
        found += [array for node in self.segment.keeps for array in recording.kept[node]]
        self.refuses = bool(recording.refusals)
        return [*found, mx.any(mx.stack(recording.refusals))] if self.refuses else found
