"""How a window slides over the spatial axes of a tensor: data formats, paddings, and the plan of each axis.

What convolutions and pools have in common. The sizes are decided first, in an immutable `AxisPlan` per spatial axis,
which also works for symbolic sizes; `windows` then only follows the plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from math import prod
from typing import Any, Final

import numpy as np

from tract_core.dims import Dim, ceil_div, dim_max, dim_min
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time, check_tensor
from tract_core.model.conditions import may_be_at_most, may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import Op
from tract_core.plugins.keys import Array


class DataFormat(Enum):
    """The order of the axes: N is the batch, C the channels, and HW stands for any number of spatial axes."""

    NCHW = "nchw"
    NHWC = "nhwc"
    CHW = "chw"
    HWC = "hwc"

    @property
    def has_n(self) -> bool:
        """Whether there is a batch axis, which is then the first."""
        return self in (DataFormat.NCHW, DataFormat.NHWC)

    @property
    def channels_first(self) -> bool:
        """Whether the channels stand before the spatial axes."""
        return self in (DataFormat.NCHW, DataFormat.CHW)

    @property
    def h_axis(self) -> int:
        """The first spatial axis."""
        return int(self.has_n) + int(self.channels_first)

    def c_axis(self, rank: int) -> int:
        """The axis of the channels in a tensor of ``rank`` axes."""
        return int(self.has_n) if self.channels_first else rank - 1

    def rank(self, spatial: int) -> int:
        """The rank of a tensor with ``spatial`` spatial axes."""
        return spatial + 1 + int(self.has_n)

    def spatial(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The sizes of the spatial axes of a shape."""
        end = len(shape) if self.channels_first else len(shape) - 1
        return tuple(shape[self.h_axis : end])

    def replaced(self, shape: Sequence[Dim], channels: Dim, spatial: Sequence[Dim]) -> tuple[Dim, ...]:
        """``shape`` with other channels and spatial sizes; the batch stays."""
        batch = tuple(shape[: int(self.has_n)])
        return (*batch, channels, *spatial) if self.channels_first else (*batch, *spatial, channels)

    def to_nchw(self, x: Array) -> Array:
        """A view of ``x`` as batch, channels, spatial axes; a batch of one where there is none."""
        batched = x if self.has_n else x[np.newaxis]
        return batched if self.channels_first else np.moveaxis(batched, -1, 1)

    def from_nchw(self, y: Array) -> Array:
        """The opposite of `to_nchw`, for a tensor with a batch of one where the format has none."""
        moved = y if self.channels_first else np.moveaxis(y, 1, -1)
        return moved if self.has_n else moved[0]


@frozen
class Window:
    """A window along one axis: ``kernel`` elements, ``dilation`` apart, moved by ``stride`` per output."""

    kernel: int
    dilation: int = 1
    stride: int = 1

    @property
    def field(self) -> int:
        """Elements from the first to the last one that the window reads, both included."""
        return (self.kernel - 1) * self.dilation + 1


@frozen
class AxisPlan:
    """One spatial axis, decided. All in elements.

    ``input``, ``output``: the sizes. ``before``, ``after``: the padding; windows of a ceil mode may reach further.
    """

    window: Window
    input: Dim
    output: Dim
    before: Dim
    after: Dim

    @property
    def overhang(self) -> Dim:
        """How far the last window reaches beyond the end of the input; negative where some of the input is not read."""
        return (self.output - 1) * self.window.stride + self.window.field - self.before - self.input

    @property
    def is_trivial(self) -> bool:
        """Whether each output position reads the input at that position, and nothing else."""
        return self.window.kernel == 1 and self.window.stride == 1 and self.before == 0 and self.after == 0


class Padding:
    """Base of the paddings: each says what it makes of spatial axis number ``axis``."""

    __slots__ = ()

    def ends(self, axis: int, size: Dim, window: Window) -> tuple[Dim, Dim, Dim]:
        """``(output size, elements before, elements after)`` for an input of ``size`` elements."""
        raise NotImplementedError

    def transposed_ends(self, axis: int, size: Dim, window: Window, adjustment: int) -> tuple[Dim, Dim, Dim]:
        """The same for a deconvolution, whose padding is cut off from what it writes.

        ``adjustment``: elements added at the end. Raises FactError for a padding that a deconvolution cannot have.
        """
        raise FactError(f"a deconvolution cannot have the padding {self}")

    def check_rank(self, rank: int) -> None:
        """Raises FactError when the padding is not for ``rank`` spatial axes."""


@frozen
class Valid(Padding):
    """No padding: windows stay inside the input."""

    def ends(self, axis: int, size: Dim, window: Window) -> tuple[Dim, Dim, Dim]:
        """As many windows as fit."""
        return _windows_within(size, window), 0, 0

    def transposed_ends(self, axis: int, size: Dim, window: Window, adjustment: int) -> tuple[Dim, Dim, Dim]:
        """All that is written."""
        return (size - 1) * window.stride + window.field + adjustment, 0, 0


@frozen
class SameUpper(Padding):
    """As much as makes the output's size the input's divided by the stride, rounded up; an odd element goes after."""

    def ends(self, axis: int, size: Dim, window: Window) -> tuple[Dim, Dim, Dim]:
        """The smaller half before, the larger after."""
        output, total = _same(size, window)
        return output, total // 2, ceil_div(total, 2)

    def transposed_ends(self, axis: int, size: Dim, window: Window, adjustment: int) -> tuple[Dim, Dim, Dim]:
        """The input's size times the stride."""
        total = max(0, window.field - window.stride + adjustment)
        return size * window.stride, total // 2, total - total // 2


@frozen
class SameLower(Padding):
    """Like `SameUpper`, an odd element going before."""

    def ends(self, axis: int, size: Dim, window: Window) -> tuple[Dim, Dim, Dim]:
        """The larger half before, the smaller after."""
        output, total = _same(size, window)
        return output, ceil_div(total, 2), total // 2

    def transposed_ends(self, axis: int, size: Dim, window: Window, adjustment: int) -> tuple[Dim, Dim, Dim]:
        """The input's size times the stride."""
        total = max(0, window.field - window.stride + adjustment)
        return size * window.stride, total - total // 2, total // 2


@frozen
class Explicit(Padding):
    """So many elements before and after, per spatial axis."""

    before: tuple[Dim, ...]
    after: tuple[Dim, ...]

    def ends(self, axis: int, size: Dim, window: Window) -> tuple[Dim, Dim, Dim]:
        """As many windows as fit into the padded input."""
        before, after = self.before[axis], self.after[axis]
        return _windows_within(size + before + after, window), before, after

    def transposed_ends(self, axis: int, size: Dim, window: Window, adjustment: int) -> tuple[Dim, Dim, Dim]:
        """What is written, less the padding."""
        before, after = self.before[axis], self.after[axis]
        return (size - 1) * window.stride + window.field + adjustment - before - after, before, after

    def check_rank(self, rank: int) -> None:
        """Raises FactError when the padding is not for ``rank`` spatial axes."""
        _check_ends(self, self.before, self.after, rank)


@frozen
class ExplicitOnnxPool(Padding):
    """Like `Explicit`, with the ``ceil_mode`` of ONNX pools.

    In that mode a last window counts that begins inside the input or the padding before it, even if it reaches beyond
    the padding after it.
    """

    before: tuple[Dim, ...]
    after: tuple[Dim, ...]
    ceil_mode: bool = False

    def ends(self, axis: int, size: Dim, window: Window) -> tuple[Dim, Dim, Dim]:
        """As many windows as fit, or as begin inside."""
        before, after = self.before[axis], self.after[axis]
        if not self.ceil_mode:
            return _windows_within(size + before + after, window), before, after
        # ceil((size + before + after - field) / stride) + 1, and no window that begins behind size + before
        slack = dim_min(0, after - window.field + window.stride)
        return ceil_div(size + before + slack, window.stride), before, after

    def check_rank(self, rank: int) -> None:
        """Raises FactError when the padding is not for ``rank`` spatial axes."""
        _check_ends(self, self.before, self.after, rank)


def _windows_within(size: Dim, window: Window) -> Dim:
    return (size - window.field + window.stride) // window.stride


def _same(size: Dim, window: Window) -> tuple[Dim, Dim]:
    output = ceil_div(size, window.stride)
    return output, dim_max(0, (output - 1) * window.stride + window.field - size)


def _check_ends(padding: Padding, before: Sequence[Dim], after: Sequence[Dim], rank: int) -> None:
    if len(before) != rank or len(after) != rank:
        raise FactError(f"the padding {padding} is for {len(before)} and {len(after)} axes; the kernel has {rank}")


@frozen
class PoolSpec:
    """What convolutions and pools have in common.

    ``kernel_shape``, ``dilations``, ``strides``: per spatial axis, in elements; no dilations or strides stand for ones.
    ``input_channels``, ``output_channels``: sizes of the channel axes; ``None`` stands for any (pools keep them).
    Raises FactError for lengths that differ and for numbers below 1.
    """

    data_format: DataFormat
    kernel_shape: tuple[int, ...]
    padding: Padding = Valid()
    dilations: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    input_channels: Dim | None = None
    output_channels: Dim | None = None

    def __post_init__(self) -> None:
        ones = (1,) * len(self.kernel_shape)
        object.__setattr__(self, "dilations", tuple(self.dilations) or ones)
        object.__setattr__(self, "strides", tuple(self.strides) or ones)
        for what, values in (("kernel", self.kernel_shape), ("dilation", self.dilations), ("stride", self.strides)):
            if len(values) != self.rank:
                raise FactError(f"{len(values)} {what}s {list(values)} for a kernel of {self.rank} axes")
            if any(value < 1 for value in values):
                raise FactError(f"{what} {list(values)} has an entry below 1")
        self.padding.check_rank(self.rank)

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.kernel_shape)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The window along each spatial axis."""
        return tuple(map(Window, self.kernel_shape, self.dilations, self.strides))

    def check_input(self, op: Op, x: TypedFact) -> None:
        """Raises FactError when ``x`` is not of the data format's rank, or has other channels than expected."""
        layout = self.data_format
        if x.rank != layout.rank(self.rank):
            raise FactError(
                f"{op.name}: the input {x} has rank {x.rank}; a kernel of {self.rank} axes on {layout.name} data "
                f"wants rank {layout.rank(self.rank)}"
            )
        channels = x.shape[layout.c_axis(x.rank)]
        if self.input_channels is not None and not may_equal(channels, self.input_channels):
            raise FactError(f"{op.name}: the input {x} has {channels} channels, {self.input_channels} are wanted")

    def plan(self, op: Op, shape: Sequence[Dim]) -> tuple[AxisPlan, ...]:
        """The plan of each spatial axis for an input of that shape.

        Raises FactError for a negative padding, and for an input too small for a single window.
        """
        plans = self._plans(shape, self.padding.ends)
        for axis, plan in enumerate(plans):
            where = f"{op.name}: on spatial axis {axis}"
            if not may_be_at_most(0, plan.before) or not may_be_at_most(0, plan.after):
                ends = f"{plan.before} before and {plan.after} after"
                raise FactError(f"{where} the padding is {ends}; it cannot be negative")
            if not may_be_at_most(0, plan.output):
                raise FactError(
                    f"{where} a window over {plan.window.field} elements does not fit into {plan.input} "
                    f"padded by {plan.before} and {plan.after}"
                )
        return plans

    def transposed_plan(self, op: Op, shape: Sequence[Dim], adjustments: Sequence[int]) -> tuple[AxisPlan, ...]:
        """The plan of each spatial axis of a deconvolution; ``before`` and ``after`` are cut off from what it writes.

        Raises FactError when less than nothing is left, and for a padding that a deconvolution cannot have. A negative
        padding after the output adds zeros there, as an adjustment does.
        """
        plans = self._plans(
            shape, lambda axis, size, window: self.padding.transposed_ends(axis, size, window, adjustments[axis])
        )
        for axis, plan in enumerate(plans):
            where = f"{op.name}: on spatial axis {axis}"
            if not may_be_at_most(0, plan.before):
                raise FactError(f"{where} the padding before is {plan.before}")
            if not may_be_at_most(0, plan.output):
                raise FactError(
                    f"{where} the output would have {plan.output} elements: "
                    f"input {plan.input}, padding {plan.before} and {plan.after}"
                )
        return plans

    def _plans(
        self, shape: Sequence[Dim], ends: Callable[[int, Dim, Window], tuple[Dim, Dim, Dim]]
    ) -> tuple[AxisPlan, ...]:
        """``ends``: for an axis, its size and its window, the size of the output and the padding at both ends."""
        sizes = enumerate(zip(self.data_format.spatial(shape), self.windows, strict=True))
        return tuple(AxisPlan(window, size, *ends(axis, size, window)) for axis, (size, window) in sizes)


def windows(
    plans: Sequence[AxisPlan], x: Array, fill: Any, *, useful: bool = False
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each position in the kernel, in row-major order: the position, and what the outputs read there.

    ``x``: (batch, channels, spatial axes), around which stands ``fill``. The second is (batch, channels, output sizes),
    which nobody writes to. ``useful``: only the positions at which some output reads an element, or one if there are
    none. Raises RunError when the time of the run is up.
    """
    read = _in_padded(plans, x, fill) or _in_pieces(plans, x, fill)
    for position in _positions(plans, useful=useful):
        check_run_time()
        yield position, read(position)


def _positions(plans: Sequence[AxisPlan], *, useful: bool) -> Iterator[tuple[int, ...]]:
    """The positions in the kernel, none of them before it is asked for."""
    if not plans:
        yield ()
        return
    for outer in _positions(plans[:-1], useful=useful):
        for last in _useful(plans[-1]) if useful else range(plans[-1].window.kernel):
            yield *outer, last


def window_elements(plans: Sequence[AxisPlan], x: Array) -> tuple[int, int]:
    """How many elements the padded tensor has of which `windows` gives views, and what is read at one position."""
    spatial = [int(plan.output) for plan in plans]
    read = prod(x.shape[:2]) * prod(spatial)
    ends = [int(plan.before) + max(0, int(plan.overhang)) for plan in plans]
    count = prod(x.shape[:2]) * prod(size + more for size, more in zip(x.shape[2:], ends, strict=True))
    return (count if count <= _MUCH * max(x.size, read) else read), read


_MUCH: Final = 4
"""How many times as large as what is read or comes out padding may make a tensor."""


def _in_padded(plans: Sequence[AxisPlan], x: Array, fill: Any) -> Callable[[Sequence[int]], Array] | None:
    """Views on the padded tensor; ``None`` where that would take much memory."""
    ends = [(int(plan.before), max(0, int(plan.overhang))) for plan in plans]
    if not any(map(any, ends)):
        whole = x
    else:
        shape = (*x.shape[:2], *(size + sum(pair) for size, pair in zip(x.shape[2:], ends, strict=True)))
        outputs = prod(x.shape[:2]) * prod(int(plan.output) for plan in plans)
        if prod(shape) > _MUCH * max(x.size, outputs):
            return None
        check_tensor(shape, x.itemsize)
        whole = np.pad(x, [(0, 0), (0, 0), *ends], constant_values=fill)

    def read(position: Sequence[int]) -> Array:
        places = [
            slice(first, first + int(plan.output) * plan.window.stride, plan.window.stride)
            for plan, index in zip(plans, position, strict=True)
            for first in [index * plan.window.dilation]
        ]
        found: Array = whole[(slice(None), slice(None), *places)]
        return found

    return read


def _in_pieces(plans: Sequence[AxisPlan], x: Array, fill: Any) -> Callable[[Sequence[int]], Array]:
    """A tensor for each position, in which the elements lie that are read."""
    shape = (*x.shape[:2], *(int(plan.output) for plan in plans))

    def read(position: Sequence[int]) -> Array:
        check_tensor(shape, x.itemsize)
        found: Array = np.full(shape, fill, x.dtype)
        places = [
            inside(index * plan.window.dilation - int(plan.before), plan.window.stride, int(plan.output), size)
            for plan, index, size in zip(plans, position, x.shape[2:], strict=True)
        ]
        outputs, inputs = zip(*places, strict=True) if places else ((), ())
        found[(slice(None), slice(None), *outputs)] = x[(slice(None), slice(None), *inputs)]
        return found

    return read


def inside(first: int, stride: int, count: int, size: int) -> tuple[slice, slice]:
    """Of ``count`` ones from ``first`` on, ``stride`` apart, those on an axis of ``size``: numbers, places."""
    low, high = max(0, -(first // stride)), min(count, -((first - size) // stride))
    if low >= high:
        return slice(0, 0), slice(0, 0)
    return slice(low, high), slice(first + low * stride, first + (high - 1) * stride + 1, stride)


def _useful(plan: AxisPlan) -> Iterator[int]:
    """The positions in a kernel at which some output reads an element, in order; the first one where there are none."""
    before, size, window, last = int(plan.before), int(plan.input), plan.window, int(plan.output) - 1
    is_whole = window.stride <= size  # then there are no gaps between what one output reads and the next one
    done, found = 0, False
    for output in [last] if is_whole else range(last, -1, -1):  # later outputs read earlier positions
        first = max(done, -((output * window.stride - before) // window.dilation))
        end = before + size - (0 if is_whole else output * window.stride)
        done = max(done, min(window.kernel, -(-end // window.dilation)))
        found = found or first < done
        yield from range(first, done)
    if not found:
        yield 0
