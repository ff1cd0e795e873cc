"""Convolutions, by those of MLX, which have channels last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import mlx.core as mx

from tract_core.ops.conv import Conv, Convolution
from tract_core.ops.pool_spec import AxisPlan, DataFormat
from tract_core.plugins.tables import Rows
from tract_metal.layout import Laid
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()

MOST_AXES: Final = 3
"""Spatial axes that MLX convolves along."""


@ROWS.row(METAL, Conv)
def lower_conv(op: Conv, site: Site) -> Computed | str:
    """Data and results with channels last; they keep that order until somebody wants another one."""
    if op.q_output is not None:
        return "quantised sums are scaled in f64"
    if any(not fact.datum_type.is_float() for fact in site.facts):
        return "MLX convolves floats only"
    if not 0 < op.pool.rank <= MOST_AXES:
        return f"MLX convolves along 1 to {MOST_AXES} axes"
    return laid(lambda x, kernel, bias: _convolved(op, x, kernel.in_order, bias.in_order))


def channels_last(layout: DataFormat, rank: int) -> tuple[int, ...]:
    """The axes of a tensor in the order batch, if there is one, spatial axes, channels."""
    channel = layout.c_axis(rank)
    return (*(axis for axis in range(rank) if axis != channel), channel)


def with_channels_last(layout: DataFormat, x: Laid, function: Callable[[mx.array], mx.array]) -> Laid:
    """What a function gives for data in the order batch, of size 1 where there is none, spatial axes, channels."""
    order = channels_last(layout, len(x.order))
    return Laid(unbatched(layout, function(batched(layout, x.as_laid(order)))), order)


def batched(layout: DataFormat, x: mx.array) -> mx.array:
    """With a batch of size 1 where there is none."""
    return x if layout.has_n else x[None]


def unbatched(layout: DataFormat, x: mx.array) -> mx.array:
    """The opposite of `batched`."""
    return x if layout.has_n else x[0]


def _convolved(op: Conv, x: Laid, kernel: mx.array, bias: mx.array) -> Laid:
    plans, weights = op.pool.plan(op, x.shape), weights_of(op, kernel)

    def summed(data: mx.array) -> mx.array:
        return with_bias(_by_mlx(data, weights, plans, op.group), bias)

    return with_channels_last(op.pool.data_format, x, summed)


def with_bias(sums: mx.array, bias: mx.array) -> mx.array:
    """Sums, with channels last, plus one number for each channel or one for all."""
    return sums + mx.reshape(bias, (-1,)).astype(sums.dtype)


def weights_of(op: Convolution, kernel: mx.array) -> mx.array:
    """Output channels, spatial axes, input channels of a group."""
    rank = kernel.ndim
    o, i, h = op.kernel_format.o_axis(rank), op.kernel_format.i_axis(rank), op.kernel_format.h_axis
    return mx.transpose(kernel, [o, *range(h, h + rank - 2), i])


def _by_mlx(data: mx.array, weights: mx.array, plans: Sequence[AxisPlan], group: int) -> mx.array:
    if data.size == 0 or weights.size == 0 or any(plan.output == 0 for plan in plans):
        shape = (data.shape[0], *(int(plan.output) for plan in plans), weights.shape[0])
        return mx.zeros(shape, data.dtype)
    ends = [(int(plan.before), int(plan.overhang)) for plan in plans]
    data = _cropped(data, ends)
    return mx.conv_general(
        data,
        weights,
        stride=[plan.window.stride for plan in plans],
        padding=([before for before, _ in ends], [max(after, 0) for _, after in ends]),
        kernel_dilation=[plan.window.dilation for plan in plans],
        groups=group,
    )


def _cropped(data: mx.array, ends: Sequence[tuple[int, int]]) -> mx.array:
    """Without what no window reads."""
    for axis, (_, after) in enumerate(ends, 1):
        if after < 0:
            data = mx.take(data, mx.arange(data.shape[axis] + after), axis=axis)
    return data
