"""Axes resized by interpolation: which elements are read, with which weights, and their sums.

What is read along an axis is said by tables: ``taps`` elements for every output position. Where the sizes of an axis
are known, its tables are constants; else a kernel fills them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tract_core.ops.resize import NearestMode
from tract_cpu.kernels.expressions import Expression
from tract_cpu.kernels.functions.rounding import ceil, floor
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.targets import Targets
from tract_cpu.language.buffers import Buffer
from tract_cpu.language.function import where
from tract_cpu.language.types import F64, INDEX, ElementType
from tract_cpu.language.values import Value

_NEAREST: Final[Mapping[NearestMode, Callable[[Value], Value]]] = {
    NearestMode.ROUND_PREFER_FLOOR: lambda place: ceil(place - 0.5),
    NearestMode.ROUND_PREFER_CEIL: lambda place: floor(place + 0.5),
    NearestMode.FLOOR: floor,
    NearestMode.CEIL: ceil,
}


@dataclass(frozen=True, slots=True)
class PlacesPlan:
    """Fills the tables of one axis. ``nearest``: which element is read; ``None`` where two are blended.

    ``weights``: the type of the weights.
    """

    nearest: NearestMode | None
    weights: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "places"

    def text(self) -> str:
        """All that it says."""
        return f"places {self.nearest} {self.weights.name}"

    def emit(self, k: Kernel) -> None:
        """Output position o stands for the place (start + stride * o) / bottom; task by task, one output position."""
        start, stride, bottom, size = (k.size() for _ in range(4))
        indices, weights = k.memory(INDEX), k.memory(self.weights)

        def put(at: Value, element: Value) -> None:
            low = where(element < 0, element.like(0), element)
            indices[at] = where(low < size, low, size - 1)

        with k.loop("task", k.end, k.begin) as task:
            place = k.convert(start + stride * task, F64) / k.convert(bottom, F64)
            if self.nearest is not None:
                put(task, k.convert(_NEAREST[self.nearest](place), INDEX))
            else:
                first = floor(place)
                put(task * 2, k.convert(first, INDEX))
                put(task * 2 + 1, k.convert(first, INDEX) + 1)
                weights[task * 2] = k.convert(1.0 - (place - first), self.weights)
                weights[task * 2 + 1] = k.convert(1.0 - (first + 1.0 - place), self.weights)


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """``taps``: how many elements are read along each resized axis; ``weighted``: whether they have weights.

    ``outer``: how many loops there are along other axes. ``lanes``: of vectors along the last axis, 0 where that is
    resized; ``masked``: whether what is left of it is computed under a mask. ``expression``: what becomes of an
    element, which is its first operand; ``along``: of each further operand, whether it moves along the last axis.
    """

    element: ElementType
    taps: tuple[int, ...]
    weighted: bool
    outer: int
    lanes: int
    masked: bool
    expression: Expression
    along: tuple[bool, ...]

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "resize"

    def text(self) -> str:
        """All that it says."""
        flags = f"{self.weighted} {self.outer} {self.lanes} {self.masked}"
        return f"resize {self.element.name} {self.taps} {flags} {self.expression.text()} {self.along}"

    def emit(self, k: Kernel) -> None:
        """Task by task, one line along the last one of the resized axes."""
        resize = _Resize(self, k)
        with k.loop("task", k.end, k.begin) as task:
            resize.line(task)


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """One resized axis: its output size, its tables, and how far the input moves."""

    size: Value
    indices: Buffer
    weights: Buffer
    stride: Value


class _Resize:
    """The kernel while it is written. ``_run``: how many elements stand side by side at each position."""

    def __init__(self, plan: ResizePlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        self._type = plan.element.computed
        self._source, self._run = k.memory(plan.element), k.size()
        self._axes = [_Axis(k.size(), k.memory(INDEX), k.memory(self._type), k.size()) for _ in plan.taps]
        self._outer = [(k.size(), k.size()) for _ in range(plan.outer)]
        self._targets = Targets.of(k, plan.expression, plan.along, len(self._outer) + len(self._axes))

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

        def some(place: Value, lanes: int, mask: Value | None) -> None:
            found = self._sum(source.at(place), 0, positions, lanes, mask)
            targets.put(place, found, lanes, mask)

        if self.plan.lanes:
            Run(self.plan.lanes, self.plan.masked).each(self.k, self._run, some)
        else:  # there is one
            some(self.k.index(0), 0, None)

    def _sum(self, at: Buffer, axis: int, positions: Sequence[Value], lanes: int, mask: Value | None) -> Value:
        """The elements that are read along an axis and those behind it, times their weights, added up."""
        k, plan = self.k, self.plan
        if axis == len(plan.taps):
            return at.vector(0, lanes, mask)
        one, taps = self._axes[axis], plan.taps[axis]
        first = positions[axis] * taps
        if not plan.weighted:
            return self._sum(at.at(one.indices[first] * one.stride), axis + 1, positions, lanes, mask)
        total = k.variable(k.constant(0.0, self._type, lanes))
        with k.loop(f"tap{axis}", taps) as tap:
            there = at.at(one.indices[first + tap] * one.stride)
            element = self._sum(there, axis + 1, positions, lanes, mask)
            total.value = one.weights[first + tap].splat(lanes).times_plus(element, total.value)
        return total.value
