"""Which elements are not zero: how many there are in each part of a tensor, then where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_llvm.language.types import I32, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size, Sizes, Taken

CHUNK: Final = 1 << 14
"""How many elements are one part, which is a task."""


@frozen
class CountNonZeroPlan:
    """How many elements of each part are not zero. What is no number is not, and zeros of both signs are."""

    element: ElementType
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "count"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Size("size"), Memory("x", self.element), Memory("counts", INDEX))

    def emit(self, k: Kernel) -> None:
        """Task by task, one part."""
        taken = self.signature.taken(k)
        size, x, counts = taken.size("size"), taken.memory("x"), taken.memory("counts")
        with k.loop("task", k.end, k.begin) as task:
            first = task * CHUNK
            part = x.at(first)
            totals = {lanes: k.variable(k.constant(0, I32, lanes)) for lanes in {0, self.run.lanes}}

            def add(place: Value, lanes: int, mask: Value | None) -> None:
                found = part.vector(place, lanes, mask).differs(0)
                totals[lanes].value = totals[lanes].value + k.convert(found, I32)

            self.run.each(k, k.smaller(size - first, CHUNK), add)
            found = [k.convert(k.total(one.value), INDEX) for one in totals.values()]
            counts[task] = sum(found[1:], found[0])


@frozen
class NonZeroPlan:
    """The places of the elements that are not zero, in row-major order. ``rank``: how many axes there are."""

    element: ElementType
    rank: int
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "non_zero"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``inner``: the sizes of all axes but the first; ``count``: places in all."""
        memory = Memory("x", self.element), Memory("starts", INDEX), Memory("result", INDEX)
        return Signature.of(Size("size"), Size("count"), Sizes("inner", max(self.rank - 1, 0)), *memory)

    def emit(self, k: Kernel) -> None:
        """result[axis, n] = the place of the nth element along the axis. Task by task, one part."""
        taken = self.signature.taken(k)
        size, x, starts = taken.size("size"), taken.memory("x"), taken.memory("starts")
        with k.loop("task", k.end, k.begin) as task:
            first, at = task * CHUNK, k.variable(starts[task])
            part = x.at(first)

            def look(place: Value) -> None:
                with k.when(part[place].differs(0)):
                    self._write(taken, first + place, at.value)
                    at.value = at.value + 1

            self._each(k, part.vector, k.smaller(size - first, CHUNK), look)

    def _write(self, taken: Taken, place: Value, at: Value) -> None:
        """Write one place of a list of all elements, along each axis."""
        count, inner, result = taken.size("count"), taken.sizes("inner"), taken.memory("result")
        for axis, length in reversed([*enumerate(inner, start=1)]):
            result[count * axis + at] = place % length
            place = place // length
        if self.rank:
            result[at] = place

    def _each(self, k: Kernel, vector: Callable[..., Value], size: Value, look: Callable[[Value], None]) -> None:
        """Call ``look`` for elements one by one, but for whole vectors of zeros."""
        lanes = self.run.lanes
        whole = size - size % lanes if lanes else k.index(0)
        if lanes:
            with k.loop("vector", whole, step=lanes) as begin:
                some = k.any(vector(begin, lanes).differs(0))
                with k.when(some), k.loop("element", begin + lanes, begin) as place:
                    look(place)
        with k.loop("rest", size, whole) as place:
            look(place)
