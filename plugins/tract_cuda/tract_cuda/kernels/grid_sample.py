"""An image sampled at the places of a grid: elements of the image times weights. Places are computed in f64."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor as floored

from tract_llvm.functions.interpolate import weight_of
from tract_llvm.functions.places import inside, on_axis
from tract_llvm.functions.rounding import floor, whole
from tract_llvm.language.types import F64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.grid_sample import CUBIC_COEFFICIENT, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_cuda.kernels.positions import THREADS, place, strided
from tract_cuda.language.kernel import Kernel, Parameter, sizes

Tap = tuple[Value, Value, Value]
"""Where an element along an axis is, whether it is what is read, and its weight."""


@frozen
class GridSamplePlan:
    """One thread for one place of the grid, and some channels one after the other.

    ``element``: of the image and the result; ``grid``: of the coordinates. ``axes``: how many spatial ones.
    ``mode``, ``align_corners``: as the operator has them; ``padding``: what is read outside.
    """

    element: ElementType
    grid: ElementType
    axes: int
    mode: Interpolator
    padding: PaddingMode
    align_corners: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "grid_sample"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many places and channels there are; sizes of the output and the image along spatial axes; tensors."""
        rank = self.axes + 2
        numbers = (Parameter("count"), Parameter("channels"), *sizes("size", self.axes + 1), *sizes("input", self.axes))
        tensors = (("image", self.element), ("grid", self.grid), ("result", self.element))
        return (*numbers, *(one for name, element in tensors for one in strided(name, element, rank)))

    def emit(self, k: Kernel) -> None:
        """result[n, c, i, ...] = sum of image[n, c, ...] times weights, around the place grid[n, i, ...]"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            batch, *spots = k.spot(number, k.sizes("size", self.axes + 1))
            grid = place(k, "grid", [batch, *spots, k.index(0)])
            step = k.size(f"grid.{self.axes + 1}")
            along = list[list[Tap]]()
            for axis in range(self.axes):
                coordinate = k.memory("grid")[grid + step * (self.axes - 1 - axis)]
                along.append(self._taps(k, axis, k.convert(coordinate, F64)))
            with k.loop("channel", k.size("channels")) as channel:
                image = batch * k.size("image.0") + channel * k.size("image.1")
                found = self._sum(k, along, image, k.index(0).equals(0))
                k.memory("result")[place(k, "result", [batch, channel, *spots])] = found

    def _taps(self, k: Kernel, axis: int, coordinate: Value) -> list[Tap]:
        """What is read along an axis."""
        reach, size, end = self.mode.reach, k.size(f"input{axis}"), k.convert(k.size(f"input{axis}"), F64)
        at = on_axis(coordinate, end, self.padding, align_corners=self.align_corners)
        begin = (whole if self.mode is Interpolator.NEAREST else floor)(at)
        found = list[Tap]()
        for tap in range(reach):
            index = begin + float(floored(-reach / 2) + 1 + tap)
            weight = weight_of(self.mode, index - at, CUBIC_COEFFICIENT)
            element = inside(index, end, self.padding, align_corners=self.align_corners)
            is_there = (index >= 0.0) & (index < end)
            if self.padding is not PaddingMode.ZEROS:
                is_there = size.equals(size)
            place = k.convert(element, k.positions) * k.size(f"image.{2 + axis}")
            found.append((place, is_there, k.convert(weight, self.element.computed)))
        return found

    def _sum(self, k: Kernel, along: Sequence[Sequence[Tap]], begin: Value, is_there: Value) -> Value:
        """The elements that are read along the first axis and those behind it, times their weights, added up."""
        if not along:
            found = k.variable(k.constant(0.0, self.element.computed))
            with k.when(is_there):
                found.value = k.memory("image")[begin]
            return found.value
        total: Value = k.constant(0.0, self.element.computed)
        for offset, there, weight in along[0]:
            total = weight.times_plus(self._sum(k, along[1:], begin + offset, is_there & there), total)
        return total
