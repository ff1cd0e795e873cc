"""The largest element of each window and its place, a line of the output at a time."""

from __future__ import annotations

from collections.abc import Callable

from tract_llvm.elements.binary import larger
from tract_llvm.elements.reducers import lowest
from tract_llvm.language.function import Variable
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.binary import Max
from tract_core.ops.pool_spec import Window
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.pool import PoolAxis
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Size


@frozen
class PoolPlacesPlan:
    """``places``: the type of the places. ``windows``: along each spatial axis. ``outer``: how many loops before these.

    ``grouped``: whether the last axis has channels, along which the elements of a line lie then, else along the last
    spatial axis. ``run``: how they are gone through.
    """

    element: ElementType
    places: ElementType
    windows: tuple[Window, ...]
    outer: int
    grouped: bool
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pool"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        tensors = [Memory("source", self.element), Memory("values", self.element), Memory("places", self.places)]
        return Signature.of(
            *tensors, Size("line"), PoolAxis.declared(len(self.windows)), Each.loop("outer", self.outer, 1)
        )

    def emit(self, k: Kernel) -> None:
        """Task by task, one line of the output."""
        pool = _PoolPlaces(self, k)
        with k.loop("task", k.end, k.begin) as task:
            pool.line(task)


class _PoolPlaces:
    """The pool while it is written. Input and outputs have no gaps, so that a place in memory is what is asked for."""

    def __init__(self, plan: PoolPlacesPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self._source, self._values, self._places = map(taken.memory, ("source", "values", "places"))
        self._run = taken.size("line")
        self._axes = PoolAxis.of(taken, plan.windows)
        self._outer = [(one.size("size"), *one.sizes("strides")) for one in taken.each("outer")]
        self._around = self._axes if plan.grouped else self._axes[:-1]

    def line(self, task: Value) -> None:
        """One line of the output."""
        k, number, begin = self.k, task, self.k.index(0)
        ranges: list[tuple[Value, Value]] = []
        for axis in reversed(self._around):
            first = axis.begin(number % axis.output)
            number = number // axis.output
            ranges.insert(0, axis.within(first, k.index(0), axis.size))
            begin = begin + first * axis.stride
        for size, stride in reversed(self._outer):
            begin, number = begin + number % size * stride, number // size
        values, places = self._values.at(task * self._run), self._places.at(task * self._run)

        def some(at: Value, lanes: int, mask: Value | None) -> None:
            best = k.variable(k.constant(lowest(self.plan.element), self.plan.element.computed, lanes))
            place = k.variable(k.constant(-1, INDEX, lanes))
            numbers = k.lanes(lanes) + at if lanes else at
            self._every(begin, ranges, lambda there: self._read(there, numbers, mask, (best, place)))
            values.put(at, best.value, mask)
            places.put(at, k.convert(place.value, self.plan.places), mask)

        self.plan.run.each(k, self._run, some)

    def _every(
        self, begin: Value, ranges: list[tuple[Value, Value]], visit: Callable[[Value], None], axis: int = 0
    ) -> None:
        """Visit every position in the kernel around the line, where it reads the input."""
        if axis == len(ranges):
            visit(begin)
            return
        (first, stop), one = ranges[axis], self._around[axis]
        with self.k.loop(f"kernel{axis}", stop, first) as position:
            self._every(begin + position * one.window.dilation * one.stride, ranges, visit, axis + 1)

    def _read(self, begin: Value, numbers: Value, mask: Value | None, kept: tuple[Variable, Variable]) -> None:
        """What windows read of one line of the input, from a place on. ``numbers``: those of elements of the output."""
        if self.plan.grouped:
            self._take(begin + numbers, mask, kept)
            return
        k, axis = self.k, self._axes[-1]
        with k.loop("window", axis.window.kernel) as position:
            at = axis.begin(numbers) + position * axis.window.dilation
            inside = (at >= 0) & (at < axis.size)
            if numbers.lanes:
                self._take(begin + at, inside if mask is None else inside & mask, kept)
            else:
                with k.when(inside):
                    self._take(begin + at, None, kept)

    def _take(self, places: Value, mask: Value | None, kept: tuple[Variable, Variable]) -> None:
        """One more element in each lane that a mask does not leave out; of the largest, the first place is kept."""
        k, (best, place) = self.k, kept
        found, before = self._source.gather(places, mask), best.value
        better = (found > before) | (place.value < 0)
        if found.type.kind == "f":
            better = better | (found.differs(found) & before.equals(before))
        most = larger(Max(), before, found)
        if mask is not None:
            better, most = better & mask, k.select(mask, most, before)
        best.value, place.value = most, k.select(better, places, place.value)
