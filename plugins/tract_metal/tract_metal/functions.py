"""The functions that MLX made of segments for sizes seen before, which all states of a plan share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final

import mlx.core as mx

from tract_core.frozen import frozen
from tract_core.limits import check_room
from tract_core.model.typed import TypedModel
from tract_metal.memory import most_bytes
from tract_metal.recording import Recorded
from tract_metal.segments import Segment

MOST_SIZES: Final = 16
"""For how many sizes a plan keeps functions of each segment."""


@frozen
class SegmentFunction:
    """A segment for certain sizes, ``recorded``, as the ``function`` of MLX that computes it.

    Each thread that calls it has MLX record it for itself. ``most_bytes``: what its tensors take at the same time.
    """

    recorded: Recorded
    function: Callable[..., list[mx.array]]
    most_bytes: int


class Functions:
    """Those of a plan, those used last. ``made``: what was made of weights, by the nodes of groups."""

    def __init__(self, model: TypedModel, pieces: int, *, compiles: bool) -> None:
        """``pieces``: how many the model has; ``compiles``: whether MLX compiles them."""
        self.model, self.made = model, dict[tuple[int, ...], Any]()
        self._compiles, self._most, self._lock = compiles, MOST_SIZES * pieces, Lock()
        self._found: OrderedDict[tuple[Any, ...], SegmentFunction] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def of(
        self, segment: Segment, symbols: Mapping[str, int], kept: Mapping[int, Sequence[tuple[int, ...]]]
    ) -> SegmentFunction:
        """The function of a segment for these sizes. ``kept``: the shapes of what each node kept.

        Raises RunError where its tensors would take too much memory.
        """
        shapes = ((node, *one) for node, one in kept.items())
        key = (segment.number, *shapes, *sorted(symbols.items()))
        with self._lock:
            found = self._found.get(key)
            if found is None:
                counts = {node: len(one) for node, one in kept.items()}
                recorded = Recorded(self.model, segment, dict(symbols), counts, self.made)
                function = mx.compile(recorded) if self._compiles else recorded
                most = most_bytes(self.model, segment, symbols)
                found = self._found[key] = SegmentFunction(recorded, function, most)
                if len(self._found) > self._most:
                    self._found.popitem(last=False)
            self._found.move_to_end(key)
        check_room(found.most_bytes)
        return found
