"""Element-wise kernels: for every position, an expression of the elements of the operands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memories, Signature, Sizes

CHUNK: Final = 8192
"""How many elements of a single long loop are one task."""


@frozen
class MapPlan:
    """Loops over positions; the last operand is the result.

    ``rank``: how many loops there are. ``moves``: how each operand moves along the innermost one, ``"stays"``,
    ``"next"`` to the next element, or ``"far"`` by a stride. ``lanes``: how many positions are computed at once, 0 for
    one. ``masked``: whether the rest of a loop is computed under a mask. ``vectors``: how many vectors are computed as
    a longer one, so that what one waits for is done beside what others wait for.
    """

    expression: Expression
    rank: int
    moves: tuple[str, ...]
    lanes: int
    masked: bool
    vectors: int = 1

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "map"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        types = (*self.expression.inputs, self.expression.result)
        steps = Each.of("loops", self.rank, Sizes("strides", len(types)))
        return Signature.of(Sizes("sizes", self.rank), Memories("tensors", types), steps)

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = expression(a[i, j, ...], b[i, j, ...], ...)"""
        taken = self.signature.taken(k)
        sizes, places = taken.sizes("sizes"), taken.memories("tensors")
        strides = [one.sizes("strides") for one in taken.each("loops")]
        if self.rank == 1:
            with k.loop("task", k.end, k.begin) as task:
                begin = task * CHUNK
                left = k.smaller(sizes[0] - begin, CHUNK)
                self._innermost(k, _moved(places, begin, strides[0]), strides[0], left)
            return
        with k.loop("axis0", k.end, k.begin) as position:
            self._nested(k, _moved(places, position, strides[0]), strides, sizes, 1)

    def _nested(
        self, k: Kernel, places: Sequence[Buffer], strides: Sequence[Sequence[Value]], sizes: Sequence[Value], axis: int
    ) -> None:
        if axis == self.rank - 1:
            self._innermost(k, places, strides[axis], sizes[axis])
            return
        with k.loop(f"axis{axis}", sizes[axis]) as position:
            self._nested(k, _moved(places, position, strides[axis]), strides, sizes, axis + 1)

    def _innermost(self, k: Kernel, places: Sequence[Buffer], strides: Sequence[Value], size: Value) -> None:
        def some(place: Value, lanes: int, mask: Value | None) -> None:
            self._compute(places, strides, place, lanes, mask)

        Run(self.lanes, self.masked, self.vectors).each(k, size, some)

    def _compute(
        self, places: Sequence[Buffer], strides: Sequence[Value], place: Value, lanes: int, mask: Value | None
    ) -> None:
        operands: list[Value] = []
        for buffer, move, stride in zip(places[:-1], self.moves[:-1], strides[:-1], strict=True):
            if move == "stays":
                operands.append(buffer[0].splat(lanes))
            elif move == "next":
                operands.append(buffer.vector(place, lanes, mask))
            else:
                operands.append(buffer[place * stride])
        result = self.expression.compute(operands).splat(lanes)
        where = place if self.moves[-1] == "next" else place * strides[-1]
        places[-1].put(where, result, mask)


def _moved(places: Sequence[Buffer], position: Value, strides: Sequence[Value]) -> list[Buffer]:
    return [place.at(position * stride) for place, stride in zip(places, strides, strict=True)]
