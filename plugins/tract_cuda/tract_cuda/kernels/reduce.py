"""What threads kept of the parts of rows that each of them went through, merged in an order that is fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tract_llvm.elements.reducers import REDUCTIONS, Kept
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import I32, U32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.reduce import Reducer
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel

MergeFn = Callable[[Kept, Kept], Kept]
"""What is kept of two parts."""


@frozen
class Spread:
    """Which thread of a block goes through which part of which row.

    ``parts``: how many threads share a row, ``rows``: how many rows, or vectors of rows, a block has: powers of two.
    ``across``: whether neighbouring threads have neighbouring rows, rather than neighbouring positions of one row;
    then a vector has ``lanes`` neighbouring rows, else positions.
    """

    parts: int
    rows: int
    lanes: int
    across: bool

    @property
    def threads(self) -> int:
        """Of a block: a multiple of 32."""
        return self.parts * self.rows

    @property
    def vector(self) -> int:
        """Lanes of vectors, 0 for single numbers."""
        return self.lanes if self.lanes > 1 else 0


class Place:
    """One thread among those of its block. ``row``: which row of the block it has; ``part``: which part of it."""

    def __init__(self, k: Kernel, spread: Spread) -> None:
        self.k, self.spread = k, spread
        thread = k.thread()
        if spread.across:
            self.part, self.row = k.divided(thread, k.index(spread.rows))
        else:
            self.row, self.part = k.divided(thread, k.index(spread.parts))

    def merged(self, kept: Kept, merge: MergeFn, shared: Sequence[Buffer]) -> Kept:
        """What all threads of a row kept, as each of them has it then. ``shared``: what `room` gave for it."""
        if not self.spread.across:
            kept = lanes_merged(kept, merge)
        if self.spread.parts == 1:
            return kept
        if self.spread.across:
            return self._through_memory(kept, merge, shared)
        within = min(self.spread.parts, WARP)
        kept = self._shuffled(kept, merge, within)
        return self._between_warps(kept, merge, shared) if self.spread.parts > WARP else kept

    def room(self, kept: Kept) -> list[Buffer]:
        """Shared memory that merging takes."""
        spread = self.spread
        if spread.across:
            count = spread.parts * spread.rows * spread.lanes if spread.parts > 1 else 0
        else:
            count = spread.rows * (spread.parts // WARP) if spread.parts > WARP else 0
        return [self.k.shared(_held(one.type), count) for one in kept] if count else []

    def _shuffled(self, kept: Kept, merge: MergeFn, threads: int) -> Kept:
        """Of so many neighbouring threads of a warp."""
        distance = 1
        while distance < threads:
            kept = merge(kept, tuple(self.k.shuffled_xor(one, distance) for one in kept))
            distance *= 2
        return kept

    def _between_warps(self, kept: Kept, merge: MergeFn, shared: Sequence[Buffer]) -> Kept:
        """Each warp lays down what it kept; then each has what all of them laid down, a lane for a warp."""
        k, warps = self.k, self.spread.parts // WARP
        begin = self.row * warps
        with k.when(k.lane().equals(0)):
            for memory, one in zip(shared, kept, strict=True):
                memory[begin + (self.part >> 5)] = k.convert(one, memory.element)
        k.barrier()
        other = k.lane() & (warps - 1)
        laid = (k.convert(memory[begin + other], one.type) for memory, one in zip(shared, kept, strict=True))
        return self._shuffled(tuple(laid), merge, warps)

    def _through_memory(self, kept: Kept, merge: MergeFn, shared: Sequence[Buffer]) -> Kept:
        """Each thread lays down what it kept; then each reads what those of its row did."""
        k, spread = self.k, self.spread
        mine = (self.part * spread.rows + self.row) * spread.lanes
        for memory, one in zip(shared, kept, strict=True):
            k.write(memory, mine, k.convert(one, memory.element))
        k.barrier()
        found: Kept | None = None
        for part in range(spread.parts):
            place = (self.row + part * spread.rows) * spread.lanes
            laid = [k.read(memory, place, spread.vector) for memory in shared]
            there = tuple(k.convert(one, like.type) for one, like in zip(laid, kept, strict=True))
            found = there if found is None else merge(found, there)
        assert found is not None, "a row has a part"
        return found


class _Types:
    """What gives constants of which only the type counts."""

    def constant(self, number: float, type_: ElementType, lanes: int = 0) -> Value:
        """A number of a type."""
        nowhere: Any = self
        return Value(nowhere, None, type_, lanes)


def kept_types(reducer: Reducer, element: ElementType) -> tuple[ElementType, ...]:
    """The types in which what a reduction keeps is laid down. ``element``: of what is reduced."""
    start: Callable[..., Kept] = REDUCTIONS[reducer].start
    return tuple(_held(one.type) for one in start(_Types(), element.computed, 0))


def _held(type_: ElementType) -> ElementType:
    """The type in which a number is laid down: no two threads write to one word."""
    return type_ if type_.bits >= U32.bits else I32 if type_.kind == "i" else U32


def lanes_merged(kept: Kept, merge: MergeFn) -> Kept:
    """The lanes of vectors merged, the first half with the second."""
    while kept[0].lanes:
        halves = [one.halves() for one in kept]
        kept = merge(tuple(one[0] for one in halves), tuple(one[1] for one in halves))
    return kept


def chosen(k: Kernel, mask: Value | None, new: Kept, old: Kept) -> Kept:
    """What is kept where a mask says so, or where there is none."""
    return new if mask is None else tuple(k.select(mask, a, b) for a, b in zip(new, old, strict=True))
