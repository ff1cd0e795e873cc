"""An image sampled at the places of a grid: elements of the image times weights, for a block of places at a time.

What is read for a place is the same in all channels. So the elements along each axis and their weights are written to
scratch memory first; then channel after channel is gone through. Places are computed in f64, as the meaning does.
"""

from __future__ import annotations

from math import floor as floored
from typing import Final

from tract_llvm.functions.interpolate import weight_of
from tract_llvm.functions.places import inside, on_axis
from tract_llvm.functions.rounding import floor, whole
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import F64, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_core.ops.grid_sample import CUBIC_COEFFICIENT, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Size

_NOWHERE: Final = -(1 << 56)
"""An offset that stays below 0 with those along other axes: what is read there is 0."""

PLACES: Final = 256
"""How many places of the grid are one task."""


@frozen
class GridSamplePlan:
    """``element``: of the image and the result; ``grid``: of the coordinates. ``axes``: how many spatial ones.

    ``mode``, ``padding``, ``align_corners``: as `tract_core.ops.grid_sample.GridSample` has them.
    """

    element: ElementType
    grid: ElementType
    axes: int
    mode: Interpolator
    padding: PaddingMode
    align_corners: bool
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "grid_sample"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(
            Memory("image", self.element),
            Memory("grid", self.grid),
            Memory("result", self.element),
            Size("places"),
            Size("channels"),
            Size("image_stride"),
            Size("channel_stride"),
            Each.loop("axes", self.axes, 1),
        )

    def scratch(self) -> int:
        """How many bytes each thread needs."""
        return self.axes * self.mode.reach * PLACES * (INDEX.bytes + self.element.computed.bytes)

    def emit(self, k: Kernel) -> None:
        """Task by task, all channels of a block of places of one image."""
        sample = _GridSample(self, k)
        with k.loop("task", k.end, k.begin) as task:
            sample.block(task)


class _GridSample:
    """The kernel while it is written. ``_places``: how many places the grid has for each image."""

    def __init__(self, plan: GridSamplePlan, k: Kernel) -> None:
        self.plan, self.k, self._type = plan, k, plan.element.computed
        taken = plan.signature.taken(k)
        self._image, self._grid, self._result = map(taken.memory, ("image", "grid", "result"))
        self._places, self._channels = taken.size("places"), taken.size("channels")
        self._image_stride, self._channel_stride = taken.size("image_stride"), taken.size("channel_stride")
        # For each spatial axis: its size, and how far apart its elements are.
        self._axes = [(one.size("size"), *one.sizes("strides")) for one in taken.each("axes")]
        self._offsets = k.scratch(INDEX)
        tables = plan.axes * plan.mode.reach
        self._weights = self._offsets.at(tables * PLACES).of(self._type)

    def block(self, task: Value) -> None:
        """All channels of one block of places."""
        k, places, run = self.k, self._places, self.plan.run
        blocks = (places + (PLACES - 1)) // PLACES
        image, first = task // blocks, task % blocks * PLACES
        count = k.smaller(places - first, PLACES)
        grid = self._grid.at((image * places + first) * self.plan.axes)
        run.each(k, count, lambda place, lanes, mask: self._look_up(grid, place, lanes, mask))
        source = self._image.at(image * self._image_stride)
        target = self._result.at(image * self._channels * places + first)
        with k.loop("channel", self._channels) as channel:
            there, result = source.at(channel * self._channel_stride), target.at(channel * places)

            def some(place: Value, lanes: int, mask: Value | None) -> None:
                result.put(place, self._sum(there, 0, k.index(0).splat(lanes), (place, lanes, mask)), mask)

            run.each(k, count, some)

    # ---- what is read for a place

    def _look_up(self, grid: Buffer, place: Value, lanes: int, mask: Value | None) -> None:
        """Write what is read along each axis, and with which weights."""
        k, reach = self.k, self.plan.mode.reach
        numbers = k.lanes(lanes) + place if lanes else place
        for axis, (size, stride) in enumerate(self._axes):
            coordinate = grid.gather(numbers * self.plan.axes + (self.plan.axes - 1 - axis), mask)
            end, (padding, align_corners) = k.convert(size, F64), (self.plan.padding, self.plan.align_corners)
            at = on_axis(k.convert(coordinate, F64), end, padding, align_corners=align_corners)
            begin = (whole if self.plan.mode is Interpolator.NEAREST else floor)(at)
            for tap in range(reach):
                index = begin + float(floored(-reach / 2) + 1 + tap)
                weight = weight_of(self.plan.mode, index - at, CUBIC_COEFFICIENT)
                found = k.convert(inside(index, end, padding, align_corners=align_corners), INDEX)
                offset = found * stride
                if self.plan.padding is PaddingMode.ZEROS:
                    offset = where((index >= 0.0) & (index < end), offset, _NOWHERE)
                row = place + (axis * reach + tap) * PLACES
                self._offsets.put(row, offset, mask)
                self._weights.put(row, k.convert(weight, self._type), mask)

    # ---- the elements there

    def _sum(self, image: Buffer, axis: int, offset: Value, lanes: tuple[Value, int, Value | None]) -> Value:
        """The elements that are read along an axis and those behind it, times their weights, added up."""
        k, reach = self.k, self.plan.mode.reach
        place, count, mask = lanes
        if axis == self.plan.axes and self.plan.padding is PaddingMode.ZEROS:
            return where(offset >= 0, image.gather(where(offset >= 0, offset, 0), mask), 0.0)
        if axis == self.plan.axes:
            return image.gather(offset, mask)
        total = k.variable(k.constant(0.0, self._type, count))
        with k.loop(f"tap{axis}", reach) as tap:
            row = (tap + axis * reach) * PLACES + place
            further = offset + self._offsets.vector(row, count, mask)
            element = self._sum(image, axis + 1, further, lanes)
            total.value = self._weights.vector(row, count, mask).times_plus(element, total.value)
        return total.value
