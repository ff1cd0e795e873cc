"""Pools: the largest element of each window, or the sum or mean, a line of the output at a time.

A line goes along the last spatial axis; channels behind it are part of the line. First, all that the windows of a line
read on the axes before becomes one line in scratch memory, with what changes nothing where padding is. Then each window
is gone through along the last axis, and what comes out goes through an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.elements.reducers import REDUCTIONS, Reduction
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.pool_spec import Window
from tract_core.ops.reduce import Reducer
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Size, Taken
from tract_cpu.kernels.targets import Targets


@frozen
class PoolPlan:
    """``reducer``: `MAX` or `SUM`. ``windows``: along each spatial axis. ``outer``: how many loops stand before these.

    ``mean``: whether sums are divided by how many elements count. ``grouped``: whether channels are part of a line.
    ``lanes``: of a vector. ``masked``: whether what is left over of a line is read and written under a mask.
    ``expression``: what becomes of a window, which is its first operand; ``along``: of each further operand, whether it
    moves along what lanes go along, the channels of a line that has some, else the windows.
    """

    element: ElementType
    reducer: Reducer
    windows: tuple[Window, ...]
    outer: int
    mean: bool
    grouped: bool
    lanes: int
    masked: bool
    expression: Expression
    along: tuple[bool, ...]

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pool"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(
            Memory("source", self.element),
            Size("channels"),
            PoolAxis.declared(len(self.windows)),
            Each.loop("outer", self.outer, 1),
            Targets.declared(self.expression, self.outer + len(self.windows)),
            Size("length"),
            Size("ones"),
        )

    def emit(self, k: Kernel) -> None:
        """Task by task, one line of the output."""
        pool = _Pool(self, k)
        with k.loop("task", k.end, k.begin) as task:
            pool.line(task)


_OF_AXIS: Final = ("size", "output", "before", "low", "high", "stride")
"""The fields of a `PoolAxis` that arguments say."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolAxis:
    """One spatial axis. ``low``, ``high``: which positions count, padding is below 0 and from ``size`` on.

    ``stride``: of the input, in elements. ``output``: positions of the result. ``before``: the padding in front.
    """

    window: Window
    size: Value
    output: Value
    before: Value
    low: Value
    high: Value
    stride: Value

    @staticmethod
    def declared(count: int) -> Each:
        """The arguments for so many spatial axes."""
        return Each.of("axes", count, *map(Size, _OF_AXIS))

    @staticmethod
    def of(taken: Taken, windows: Sequence[Window]) -> list[PoolAxis]:
        """Those among the arguments of a kernel that were declared."""
        found = zip(windows, taken.each("axes"), strict=True)
        return [PoolAxis(window, *(one.size(name) for name in _OF_AXIS)) for window, one in found]

    def begin(self, position: Value) -> Value:
        """The first position in the input of the window of an output position; below 0 in the padding."""
        return position * self.window.stride - self.before

    def within(self, begin: Value, low: Value, high: Value) -> tuple[Value, Value]:
        """The first position in the kernel that reads from ``low`` on, and the one behind the last below ``high``."""
        return self._first(low - begin), self._first(high - begin)

    def counted(self, begin: Value) -> Value:
        """How many elements of a window count."""
        first, stop = self.within(begin, self.low, self.high)
        return where(first < stop, stop - first, 0)

    def _first(self, distance: Value) -> Value:
        """The first position in the kernel that is so far from its begin or further, ``kernel`` if there is none."""
        found = (distance + (self.window.dilation - 1)) // self.window.dilation
        found = where(distance > 0, found, 0)
        return where(found < self.window.kernel, found, self.window.kernel)


class _Total:
    """What elements are reduced to, one after the other."""

    def __init__(self, k: Kernel, how: Reduction, type_: ElementType, lanes: int) -> None:
        self._k, self._how = k, how
        self._kept = [k.variable(one) for one in how.start(k, type_, lanes)]

    def add(self, element: Value) -> None:
        """One more element in each lane."""
        found = self._how.add(tuple(one.value for one in self._kept), element, self._k.index(0))
        for one, value in zip(self._kept, found, strict=True):
            one.value = value

    @property
    def value(self) -> Value:
        """What they are reduced to."""
        return self._how.finish(tuple(one.value for one in self._kept), self._k.index(0))


class _Pool:
    """The pool while it is written. ``_channels``: how many elements of a line stand side by side at each position."""

    def __init__(self, plan: PoolPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        self._run = Run(plan.lanes, plan.masked)
        self._how, self._type = REDUCTIONS[plan.reducer], plan.element.computed
        taken = plan.signature.taken(k)
        self._source, self._channels = taken.memory("source"), taken.size("channels")
        self._axes = PoolAxis.of(taken, plan.windows)
        # For each loop before the spatial axes: its size, and how far the input moves.
        self._outer = [(one.size("size"), *one.sizes("strides")) for one in taken.each("outer")]
        self._targets = Targets.of(taken, plan.expression, plan.along)
        self._length, ones = taken.size("length"), taken.size("ones")
        self._line, self._ones = k.scratch(self._type), k.scratch(self._type).at(ones)

    def line(self, task: Value) -> None:
        """One line of the output."""
        source, number = self._source, task
        targets = self._targets
        begins: list[Value] = []
        for place in reversed(range(len(self._axes) - 1)):
            axis = self._axes[place]
            position, number = number % axis.output, number // axis.output
            begins.insert(0, axis.begin(position))
            targets = targets.moved(len(self._outer) + place, position)
        for place, (size, stride) in reversed(list(enumerate(self._outer))):
            position, number = number % size, number // size
            source = source.at(position * stride)
            targets = targets.moved(place, position)
        for axis, begin in zip(self._axes[:-1], begins, strict=True):
            source = source.at(begin * axis.stride)
        self._gather(source, begins)
        count = self.k.index(1)
        for axis, begin in zip(self._axes[:-1], begins, strict=True):
            count = count * axis.counted(begin)
        self._windows(targets, self.k.convert(count, self._type) if self.plan.mean else None)

    # ---- the axes before the last one

    def _gather(self, source: Buffer, begins: list[Value]) -> None:
        """The line: what the windows read on the axes before becomes one, with what changes nothing around it."""
        k, last, channels = self.k, self._axes[-1], self._channels
        first, size = last.before * channels, last.size * channels
        neutral = self._how.start(k, self._type, self.plan.lanes)[0]
        self._fill(self._line, k.index(0), first, neutral)
        self._fill(self._line, first + size, self._length * channels, neutral)
        ranges = [axis.within(b, k.index(0), axis.size) for axis, b in zip(self._axes, begins, strict=False)]
        inside = self._line.at(first)

        def column(place: Value, lanes: int, mask: Value | None) -> None:
            total = _Total(k, self._how, self._type, lanes)
            self._every(source, ranges, 0, lambda at: total.add(at.vector(place, lanes, mask)))
            inside.put(place, total.value, mask)

        self._run.each(k, size, column)

    def _every(
        self, source: Buffer, ranges: list[tuple[Value, Value]], axis: int, visit: Callable[[Buffer], None]
    ) -> None:
        """Visit every position in the kernel on the axes from ``axis`` to before the last, where it reads the input."""
        if axis == len(ranges):
            visit(source)
            return
        (first, stop), one = ranges[axis], self._axes[axis]
        with self.k.loop(f"kernel{axis}", stop, first) as position:
            at = source.at(position * one.window.dilation * one.stride)
            self._every(at, ranges, axis + 1, visit)

    # ---- the last axis

    def _windows(self, targets: Targets, count: Value | None) -> None:
        if self.plan.grouped:
            with self.k.loop("output", self._axes[-1].output) as position:
                self._window_of_channels(targets, position, count)
            return
        if count is not None:
            self._fill_ones()
        window = self._axes[-1].window

        def outputs(place: Value, lanes: int, mask: Value | None) -> None:
            first = place * window.stride
            found = self._window(self._line, first, 1, lanes)
            if count is not None:
                found = found / (self._window(self._ones, first, 1, lanes, Reducer.SUM) * count)
            targets.put(place, found, lanes, mask)

        run = self._run if window.stride <= 2 else Run(0, masked=False)  # lanes are windows
        run.each(self.k, self._axes[-1].output, outputs)

    def _window_of_channels(self, targets: Targets, position: Value, count: Value | None) -> None:
        last, channels = self._axes[-1], self._channels
        line = self._line.at(position * last.window.stride * channels)
        there = targets.moved(-1, position)
        counted = last.counted(last.begin(position))
        if count is not None:
            count = count * self.k.convert(counted, self._type)

        def some(place: Value, lanes: int, mask: Value | None) -> None:
            found = self._window(line, place, channels, lanes, side_by_side=True)
            there.put(place, found if count is None else found / count, lanes, mask)

        self._run.each(self.k, channels, some)

    def _window(
        self,
        line: Buffer,
        first: Value,
        apart: Value | int,
        lanes: int,
        reducer: Reducer | None = None,
        *,
        side_by_side: bool = False,
    ) -> Value:
        """What a window, or one for each lane, reads of a line. ``apart``: how far positions are, in elements."""
        window, how = self._axes[-1].window, REDUCTIONS[reducer or self.plan.reducer]
        total = _Total(self.k, how, self._type, lanes)
        with self.k.loop("window", window.kernel) as position:
            place = first + position * window.dilation * apart
            if lanes and window.stride == 2 and not side_by_side:
                element = line.vector(place, lanes).every_other(line.vector(place + lanes, lanes))
            else:
                element = line.vector(place, lanes)
            total.add(element)
        return total.value

    def _fill_ones(self) -> None:
        """The line of ones, at the positions that count, and zeros elsewhere."""
        k, last = self.k, self._axes[-1]
        low, high = last.low + last.before, k.smaller(last.high + last.before, self._length)
        zero, one = (k.constant(number, self._type, self.plan.lanes) for number in (0, 1))
        self._fill(self._ones, k.index(0), low, zero)
        self._fill(self._ones, low, high, one)
        self._fill(self._ones, high, self._length, zero)

    # ---- lines

    def _fill(self, line: Buffer, begin: Value, end: Value, vector: Value) -> None:
        """Fill from a place to another. What is behind may be overwritten too, so it is written later."""
        with self.k.loop("fill", end, begin, self.plan.lanes) as place:
            line.put(place, vector)
