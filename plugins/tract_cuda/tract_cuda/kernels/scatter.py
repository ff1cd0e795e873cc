"""Elements written to places that a tensor of numbers names, in the order of the updates.

Threads go in any order. So each place first gets a list of the updates that go there, as links from one to the next.
Where the order counts, lists are sorted. Then one thread for each element of the result goes through a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.elements.expressions import rounded
from tract_llvm.elements.scatter import COMBINED
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Variable, where
from tract_llvm.language.types import I32, I64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.gather import named, named_place, refuse
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter

NONE: Final = -1
"""Stands for no update: the end of a list."""


@frozen
class LinkPlan:
    """One thread for one update, in so many loops. ``index``: the type of numbers, so many of which name a place.

    ``rank``: how many loops there are; ``coordinates``: how many numbers name a place.
    """

    index: ElementType
    rank: int
    coordinates: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "scatter_link"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops; in them the first update of each place, and the numbers; of each update the next one."""
        tensors = (*strided("heads", I64, self.rank), *strided("numbers", self.index, self.rank))
        return (
            *counted(self.rank),
            *tensors,
            *named(self.coordinates),
            Parameter("links", I64),
            Parameter("status", I32),
        )

    def emit(self, k: Kernel) -> None:
        """Put each update in front of the list of its place."""
        number = k.block() * THREADS + k.thread()
        with position(k, self.rank) as at:
            offset, inside = named_place(k, place(k, "numbers", at), self.coordinates)
            with k.when(~inside):
                refuse(k)
            with k.when(inside):
                head = place(k, "heads", at) + offset
                k.memory("links")[number] = k.exchanged(k.memory("heads"), head, k.convert(number, I64))


@frozen
class SortPlan:
    """One thread for one place: its list in the order of the updates."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "scatter_sort"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many places there are, the first update of each, and of each update the next one."""
        return (Parameter("count"), Parameter("heads", I64), Parameter("links", I64))

    def emit(self, k: Kernel) -> None:
        """Merge runs, of one at first, two by two, until there is one."""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            heads, links = k.memory("heads"), k.memory("links")
            head = k.variable(heads[number])
            with k.when(head.value >= 0):
                _Merge(k, links, head).sort()
                heads[number] = head.value


class _Merge:
    """A list while it is sorted. ``head``: its first element."""

    def __init__(self, k: Kernel, links: Buffer, head: Variable) -> None:
        self.k, self.links, self.head = k, links, head
        none = k.constant(NONE, I64)
        self.length, self.runs, self.tail = k.variable(none.like(1)), k.variable(none.like(2)), k.variable(none)
        self.left, self.right, self.mine, self.others = (k.variable(none) for _ in range(4))

    def sort(self) -> None:
        """Runs of a length become half as many, twice as long."""
        k, none = self.k, self.k.constant(NONE, I64)
        with k.loop_while("round", lambda: self.runs.value > 1):
            self.left.value, self.head.value, self.tail.value, self.runs.value = self.head.value, none, none, none + 1
            with k.loop_while("runs", lambda: self.left.value >= 0):
                self.runs.value = self.runs.value + 1
                self._cut()
                with k.loop_while("merge", self._is_left):
                    self._take()
                self.left.value = self.right.value
            self.links[k.convert(self.tail.value, k.positions)] = none
            self.length.value = self.length.value * 2

    def _cut(self) -> None:
        """Find where the second run begins."""
        k = self.k
        self.right.value, self.mine.value = self.left.value, self.left.value.like(0)
        more = lambda: (self.mine.value < self.length.value) & (self.right.value >= 0)  # noqa: E731
        with k.loop_while("cut", more):
            self.mine.value = self.mine.value + 1
            self.right.value = self._next(self.right.value)
        self.others.value = self.length.value

    def _is_left(self) -> Value:
        return (self.mine.value > 0) | ((self.others.value > 0) & (self.right.value >= 0))

    def _take(self) -> None:
        """Put the smaller one of the first elements of both runs behind what is sorted."""
        k, left, right = self.k, self.left.value, self.right.value
        over = (self.others.value < 1) | (right < 0)
        first = (self.mine.value > 0) & (over | (left < right))
        taken = where(first, left, right)
        with k.either(self.tail.value < 0) as (then, otherwise):
            with then:
                self.head.value = taken
            with otherwise:
                self.links[k.convert(self.tail.value, k.positions)] = taken
        following = self._next(taken)
        self.tail.value = taken
        self.left.value, self.right.value = where(first, following, left), where(first, right, following)
        self.mine.value = where(first, self.mine.value - 1, self.mine.value)
        self.others.value = where(first, self.others.value, self.others.value - 1)

    def _next(self, update: Value) -> Value:
        return self.links[self.k.convert(update, self.k.positions)]


@frozen
class ScatterPlan:
    """One thread for one element of the result, in so many loops. ``reduction``: a key of `COMBINED`, or ``"none"``.

    ``rank``: how many loops there are.
    """

    element: ElementType
    rank: int
    reduction: str

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "scatter"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops; in them data, the first update of each place, what it writes there, and the result.

        ``apart``: how far apart updates are; of each update the next one.
        """
        tensors = (("data", self.element), ("heads", I64), ("updates", self.element), ("result", self.element))
        along = [one for name, element in tensors for one in strided(name, element, self.rank)]
        return (*counted(self.rank), *along, Parameter("apart"), Parameter("links", I64))

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = what becomes of data[i, j, ...] with one update after the other"""
        write = self._last if self.reduction == "none" else self._combined
        with position(k, self.rank) as at:
            data, result = k.memory("data"), k.memory("result")
            source, target = place(k, "data", at), place(k, "result", at)
            head = k.memory("heads")[place(k, "heads", at)]
            with k.either(head < 0) as (then, otherwise):
                with then:
                    result[target] = data[source]
                with otherwise:
                    result[target] = write(k, data[source], head, place(k, "updates", at))

    def _last(self, k: Kernel, old: Value, head: Value, begin: Value) -> Value:
        update = k.variable(head)
        last = k.variable(head)
        with k.loop_while("update", lambda: update.value >= 0):
            last.value = where(update.value > last.value, update.value, last.value)
            update.value = self._next(k, update.value)
        return self._read(k, last.value, begin)

    def _combined(self, k: Kernel, old: Value, head: Value, begin: Value) -> Value:
        update, found = k.variable(head), k.variable(old)
        with k.loop_while("update", lambda: update.value >= 0):
            found.value = COMBINED[self.reduction](found.value, self._read(k, update.value, begin))
            update.value = self._next(k, update.value)
        return rounded(found.value, self.element)

    def _read(self, k: Kernel, update: Value, begin: Value) -> Value:
        return k.memory("updates")[k.convert(update, k.positions) * k.size("apart") + begin]

    def _next(self, k: Kernel, update: Value) -> Value:
        return k.memory("links")[k.convert(update, k.positions)]
