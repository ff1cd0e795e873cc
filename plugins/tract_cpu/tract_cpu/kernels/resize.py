"""Axes resized by interpolation: which elements are read, with which weights, and their sums.

What is read along an axis is said by tables: ``taps`` elements for every output position, and their weights. Where the
sizes of an axis are known, its tables are constants; else a kernel fills them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.functions.interpolate import weight_of
from tract_llvm.functions.places import NEAREST
from tract_llvm.functions.rounding import floor, whole
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import BOOL, F64, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import NearestMode
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Item, Memory, Signature, Size, Taken
from tract_cpu.kernels.targets import Targets


@frozen
class TapsPlan:
    """Fills the tables of one axis. ``nearest``: which element is read; ``None`` where several are blended.

    ``mode``, ``a``: how those are; ``antialias``: whether the kernel is stretched; ``cut``: whether elements outside
    weigh nothing. ``weights``: the type of the weights. ``crops``: whether places outside get no element.
    """

    nearest: NearestMode | None
    mode: Interpolator
    a: float
    antialias: bool
    cut: bool
    crops: bool
    weights: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "taps"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        places = (Size("start"), Size("stride"), Size("bottom"), Size("input"))
        return Signature.of(*places, *_COUNTED, Memory("indices", INDEX), Memory("weights", self.weights))

    def emit(self, k: Kernel) -> None:
        """Output position o stands for the place (start + stride * o) / bottom; task by task, one output position."""
        taken = self.signature.taken(k)
        start, stride, bottom, size = map(taken.size, ("start", "stride", "bottom", "input"))
        taps, reach = _taps(k, taken)
        indices, weights = taken.memory("indices"), taken.memory("weights")
        stretch = reach / (self.mode.reach / 2)
        with k.loop("task", k.end, k.begin) as task:
            place = k.convert(start + stride * task, F64) / k.convert(bottom, F64)
            first = task * taps
            if self.nearest is not None:
                indices[first] = _inside(k.convert(NEAREST[self.nearest](place), INDEX), size)
            else:
                self._blend(k, place, (size, taps, stretch), (indices.at(first), weights.at(first)))
            if self.crops:
                with k.when((place < 0.0) | (place > k.convert(size - 1, F64))):
                    indices[first] = k.index(-1)

    def _blend(self, k: Kernel, place: Value, sizes: tuple[Value, Value, Value], tables: tuple[Buffer, Buffer]) -> None:
        (size, taps, stretch), (indices, weights) = sizes, tables
        lowest = k.convert(floor(place), INDEX) + (2 - taps) // 2  # a single one is the place itself

        def weight_at(index: Value) -> Value:
            distance = k.convert(index, F64) - place
            found = weight_of(self.mode, distance / stretch if self.antialias else distance, self.a)
            return where((index >= 0) & (index < size), found, 0.0) if self.cut else found

        total = k.variable(k.constant(0.0, F64))
        if self.antialias or self.cut:
            with k.loop("sum", taps) as tap:
                total.value = total.value + weight_at(lowest + tap)
        with k.loop("tap", taps) as tap:
            weight = weight_at(lowest + tap)
            indices[tap] = _inside(lowest + tap, size)
            weights[tap] = k.convert(weight / total.value if self.antialias or self.cut else weight, self.weights)


_COUNTED: Final = (Size("stays"), Size("reach_top"), Size("reach_bottom"))
"""Whether an axis stays as it is, when one element is read, and else how far away elements are, as a fraction."""


def _taps(k: Kernel, taken: Taken) -> tuple[Value, Value]:
    """How many elements are read, and how far away at most."""
    stays, top, bottom = (taken.size(one.name) for one in _COUNTED)
    taps = where(stays.equals(0), (top + bottom - 1) // bottom * 2, 1)
    return taps, k.convert(top, F64) / k.convert(bottom, F64)


def _inside(index: Value, size: Value) -> Value:
    low = where(index < 0, index.like(0), index)
    return where(low < size, low, size - 1)


@frozen
class ResizePlan:
    """``taps``: how many elements are read along each resized axis, ``None`` where arguments say it (`_taps`).

    ``computed``: the type of the sums; ``weighted``: whether there are weights, else one element is read. ``crops``:
    whether positions of which a table says -1 get a number that an argument gives. ``outer``: how many loops there are
    along other axes. ``lanes``: of vectors along the last axis, 0 where that is resized; ``masked``: whether what is
    left of it is computed under a mask. ``expression``: what becomes of an element, which is its first operand;
    ``along``: of each further operand, whether it moves along the last axis.
    """

    element: ElementType
    computed: ElementType
    taps: tuple[int | None, ...]
    weighted: bool
    crops: bool
    outer: int
    lanes: int
    masked: bool
    expression: Expression
    along: tuple[bool, ...]

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "resize"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        outside = [Memory("outside", self.computed)] if self.crops else []
        return Signature.of(
            Memory("source", self.element),
            Size("run"),
            Each("axes", tuple(self._of_axis(taps) for taps in self.taps)),
            Each.loop("outer", self.outer, 1),
            Targets.declared(self.expression, self.outer + len(self.taps)),
            *outside,
        )

    def _of_axis(self, taps: int | None) -> tuple[Item, ...]:
        counted = _COUNTED if taps is None else ()
        tables = Memory("indices", INDEX), Memory("weights", self.computed)
        return (Size("output"), *counted, *tables, Size("stride"))

    def emit(self, k: Kernel) -> None:
        """Task by task, one line along the last one of the resized axes."""
        resize = _Resize(self, k)
        with k.loop("task", k.end, k.begin) as task:
            resize.line(task)


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """One resized axis: its output size, how many elements are read, its tables, and how far the input moves."""

    size: Value
    taps: Value
    indices: Buffer
    weights: Buffer
    stride: Value


class _Resize:
    """The kernel while it is written. ``_run``: how many elements stand side by side at each position."""

    def __init__(self, plan: ResizePlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        self._type = plan.computed
        taken = plan.signature.taken(k)
        self._source, self._run = taken.memory("source"), taken.size("run")
        self._axes = [self._axis(*one) for one in zip(plan.taps, taken.each("axes"), strict=True)]
        self._outer = [(one.size("size"), *one.sizes("strides")) for one in taken.each("outer")]
        self._targets = Targets.of(taken, plan.expression, plan.along)
        self._outside = taken.memory("outside")[0] if plan.crops else None

    def _axis(self, taps: int | None, taken: Taken) -> _Axis:
        size, count = taken.size("output"), _taps(self.k, taken)[0] if taps is None else self.k.index(taps)
        return _Axis(size, count, taken.memory("indices"), taken.memory("weights"), taken.size("stride"))

    def line(self, task: Value) -> None:
        """One line of the output."""
        source, number = self._source, task
        targets = self._targets
        positions: list[Value] = []
        for place in reversed(range(len(self._axes) - 1)):
            position, number = number % self._axes[place].size, number // self._axes[place].size
            positions.insert(0, position)
            targets = targets.moved(len(self._outer) + place, position)
        for place, (size, stride) in reversed(list(enumerate(self._outer))):
            position, number = number % size, number // size
            source = source.at(position * stride)
            targets = targets.moved(place, position)
        with self.k.loop("position", self._axes[-1].size) as last:
            self._elements(source, [*positions, last], targets.moved(-1, last))

    def _elements(self, source: Buffer, positions: Sequence[Value], targets: Targets) -> None:
        """What stands side by side at one position."""

        def read(place: Value, lanes: int, mask: Value | None) -> None:
            found = self._sum(source.at(place), 0, positions, lanes, mask)
            is_rounded = self.plan.weighted and self.plan.element.kind != "f"
            targets.put(place, whole(found) if is_rounded else found, lanes, mask)

        if self._outside is None:
            self._each(read)
            return
        outside = self._outside
        pairs = zip(self._axes, positions, strict=True)
        inside = self.k.constant(1, BOOL)
        for one, position in pairs:
            inside = inside & (one.indices[position * one.taps] >= 0)
        with self.k.either(inside) as (then, otherwise):
            with then:
                self._each(read)
            with otherwise:
                self._each(lambda place, lanes, mask: targets.put(place, outside.splat(lanes), lanes, mask))

    def _each(self, visit: Callable[[Value, int, Value | None], None]) -> None:
        if self.plan.lanes:
            Run(self.plan.lanes, self.plan.masked).each(self.k, self._run, visit)
        else:  # there is one
            visit(self.k.index(0), 0, None)

    def _sum(self, at: Buffer, axis: int, positions: Sequence[Value], lanes: int, mask: Value | None) -> Value:
        """The elements that are read along an axis and those behind it, times their weights, added up."""
        k, plan = self.k, self.plan
        if axis == len(plan.taps):
            return k.convert(at.vector(0, lanes, mask), self._type)
        one = self._axes[axis]
        first = positions[axis] * one.taps
        if not plan.weighted:
            return self._sum(at.at(one.indices[first] * one.stride), axis + 1, positions, lanes, mask)
        zero = k.constant(0.0, self._type)
        if plan.taps[axis] is None:  # a single element stays what it is, were it -0.0
            zero = where(one.taps.equals(1), -zero, zero)
        total = k.variable(zero.splat(lanes))
        with k.loop(f"tap{axis}", one.taps) as tap:
            there = at.at(one.indices[first + tap] * one.stride)
            element = self._sum(there, axis + 1, positions, lanes, mask)
            total.value = one.weights[first + tap].splat(lanes).times_plus(element, total.value)
        return total.value
