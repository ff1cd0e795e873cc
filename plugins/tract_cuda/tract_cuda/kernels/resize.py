"""Axes resized by interpolation: which elements are read, with which weights, and their sums.

What is read along an axis is said by tables: some elements for every output position, and their weights. Where the
sizes of an axis are known, its tables are constants; else a kernel fills them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.functions.interpolate import weight_of
from tract_llvm.functions.places import NEAREST
from tract_llvm.functions.rounding import floor, whole
from tract_llvm.language.function import where
from tract_llvm.language.types import F64, I64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import NearestMode
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter

COUNTED: Final = ("stays", "reach_top", "reach_bottom")
"""Whether an axis stays as it is, when one element is read, and else how far away elements are, as a fraction."""


def taps_of(k: Kernel, suffix: str = "") -> tuple[Value, Value]:
    """How many elements are read, and how far away at most."""
    stays, top, bottom = (k.size(f"{name}{suffix}") for name in COUNTED)
    taps = k.select(stays.equals(0), (top + bottom - 1) // bottom * 2, 1)
    return taps, k.convert(top, F64) / k.convert(bottom, F64)


@frozen
class TapsPlan:
    """Fills the tables of one axis, one thread for a position. ``nearest``: which element is read, if it is one.

    ``mode``, ``a``: how several are blended; ``antialias``: whether the kernel is stretched; ``cut``: whether elements
    outside weigh nothing. ``weights``: the type of the weights. ``crops``: whether places outside get no element.
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
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many positions there are, which places they stand for, the size of the input, and the tables."""
        numbers = ("count", "start", "stride", "bottom", "input", *COUNTED)
        return (*map(Parameter, numbers), Parameter("indices", I64), Parameter("weights", self.weights))

    def emit(self, k: Kernel) -> None:
        """Position o stands for the place (start + stride * o) / bottom."""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            taps, reach = taps_of(k)
            start, stride, bottom, size = (
                k.convert(k.size(name), I64) for name in ("start", "stride", "bottom", "input")
            )
            spot = k.convert(start + stride * k.convert(number, I64), F64) / k.convert(bottom, F64)
            first, indices = number * taps, k.memory("indices")
            if self.nearest is not None:
                indices[first] = _inside(k.convert(NEAREST[self.nearest](spot), I64), size)
            else:
                self._blend(k, spot, size, (first, taps, reach / (self.mode.reach / 2)))
            if self.crops:
                with k.when((spot < 0.0) | (spot > k.convert(size - 1, F64))):
                    indices[first] = k.constant(-1, I64)

    def _blend(self, k: Kernel, spot: Value, size: Value, counts: tuple[Value, Value, Value]) -> None:
        first, taps, stretch = counts
        indices, weights = k.memory("indices"), k.memory("weights")
        lowest = k.convert(floor(spot), I64) + k.convert((2 - taps) // 2, I64)  # a single one is the place itself

        def weight_at(index: Value) -> Value:
            distance = k.convert(index, F64) - spot
            found = weight_of(self.mode, distance / stretch if self.antialias else distance, self.a)
            return where((index >= 0) & (index < size), found, 0.0) if self.cut else found

        total = k.variable(k.constant(0.0, F64))
        if self.antialias or self.cut:
            with k.loop("sum", taps) as tap:
                total.value = total.value + weight_at(lowest + k.convert(tap, I64))
        with k.loop("tap", taps) as tap:
            index = lowest + k.convert(tap, I64)
            weight = weight_at(index)
            indices[first + tap] = _inside(index, size)
            weights[first + tap] = k.convert(
                weight / total.value if self.antialias or self.cut else weight, self.weights
            )


def _inside(index: Value, size: Value) -> Value:
    low = where(index < 0, index.like(0), index)
    return where(low < size, low, size - 1)


@frozen
class ResizePlan:
    """One thread for ``lanes`` neighbours of the result. ``axes``: the loops over resized ones.

    ``taps``: how many elements are read along each, ``None`` where arguments say it. ``computed``: the type of the
    sums; ``weighted``: whether there are weights, else one element is read. ``crops``: whether positions of which a
    table says -1 get a number.
    ``rank``: how many loops there are.
    """

    element: ElementType
    computed: ElementType
    rank: int
    axes: tuple[int, ...]
    taps: tuple[int | None, ...]
    weighted: bool
    crops: bool
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "resize"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, both tensors in them, the input's strides 0 along resized axes; of these, tables and strides."""
        found = [*counted(self.rank), *strided("data", self.element, self.rank)]
        found += strided("result", self.element, self.rank)
        for number, taps in enumerate(self.taps):
            found += [Parameter(f"{name}{number}") for name in (COUNTED if taps is None else ())]
            found += [Parameter(f"indices{number}", I64), Parameter(f"weights{number}", self.computed)]
            found.append(Parameter(f"along{number}"))
        return (*found, *([Parameter("outside", self.computed)] if self.crops else []))

    def emit(self, k: Kernel) -> None:
        """result[i, ...] = sums of data[indices[i, tap], ...] * weights[i, tap]"""
        lanes = self.lanes if self.lanes > 1 else 0
        with position(k, self.rank) as at:
            target, begin = place(k, "result", at), place(k, "data", at)
            spots = [at[axis] for axis in self.axes]
            inside = self._is_inside(k, spots)
            if inside is None:
                k.write(k.memory("result"), target, self._finished(self._sum(k, begin, 0, spots)))
                return
            with k.either(inside) as (then, otherwise):
                with then:
                    k.write(k.memory("result"), target, self._finished(self._sum(k, begin, 0, spots)))
                with otherwise:
                    k.write(k.memory("result"), target, k.memory("outside")[0].splat(lanes))

    def _is_inside(self, k: Kernel, spots: Sequence[Value]) -> Value | None:
        if not self.crops:
            return None
        inside = k.index(0).equals(0)
        for number, spot in enumerate(spots):
            inside = inside & (k.memory(f"indices{number}")[spot * self._taps(k, number)] >= 0)
        return inside

    def _finished(self, value: Value) -> Value:
        return whole(value) if self.weighted and self.element.kind != "f" else value

    def _taps(self, k: Kernel, number: int) -> Value:
        taps = self.taps[number]
        return k.index(taps) if taps is not None else taps_of(k, str(number))[0]

    def _sum(self, k: Kernel, begin: Value, number: int, spots: Sequence[Value]) -> Value:
        """The elements that are read along an axis and those behind it, times their weights, added up."""
        lanes = self.lanes if self.lanes > 1 else 0
        if number == len(self.axes):
            return k.convert(k.read(k.memory("data"), begin, lanes), self.computed)
        taps, indices, along = self._taps(k, number), k.memory(f"indices{number}"), k.size(f"along{number}")
        first = spots[number] * taps
        if not self.weighted:
            return self._sum(k, begin + k.convert(indices[first], k.positions) * along, number + 1, spots)
        zero = k.constant(0.0, self.computed)
        if self.taps[number] is None:  # a single element stays what it is, were it -0.0
            zero = where(taps.equals(1), -zero, zero)
        total = k.variable(zero.splat(lanes))
        with k.loop(f"tap{number}", taps) as tap:
            there = begin + k.convert(indices[first + tap], k.positions) * along
            element = self._sum(k, there, number + 1, spots)
            total.value = k.memory(f"weights{number}")[first + tap].splat(lanes).times_plus(element, total.value)
        return total.value
