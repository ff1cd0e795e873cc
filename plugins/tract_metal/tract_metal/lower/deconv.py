"""Deconvolutions: convolutions of data with zeros in between, by the kernel turned around."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import AxisPlan
from tract_core.plugins.tables import Rows
from tract_metal.layout import Laid
from tract_metal.lower.conv import MOST_AXES, weights_of, with_bias, with_channels_last
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Deconv)
def lower_deconv(op: Deconv, site: Site) -> Computed | str:
    """With channels last, as convolutions."""
    if any(not fact.datum_type.is_float() for fact in site.facts):
        return "MLX convolves floats only"
    if not 0 < op.pool.rank <= MOST_AXES:
        return f"MLX convolves along 1 to {MOST_AXES} axes"
    return laid(lambda x, kernel, bias: _deconvolved(op, x, kernel.in_order, bias.in_order))


def _deconvolved(op: Deconv, x: Laid, kernel: mx.array, bias: mx.array) -> Laid:
    plans, weights = op.pool.transposed_plan(op, x.shape, op.adjustments), weights_of(op, kernel)

    def summed(data: mx.array) -> mx.array:
        shape = (data.shape[0], *(int(plan.output) for plan in plans), weights.shape[0])
        empty = 0 in (data.size, weights.size, *shape)
        return with_bias(mx.zeros(shape, data.dtype) if empty else _by_mlx(data, weights, plans, op.group), bias)

    return with_channels_last(op.pool.data_format, x, summed)


def _by_mlx(data: mx.array, weights: mx.array, plans: Sequence[AxisPlan], group: int) -> mx.array:
    reach = [(plan.window.kernel - 1) * plan.window.dilation for plan in plans]
    before = [more - int(plan.before) for more, plan in zip(reach, plans, strict=True)]
    written = [(size - 1) * plan.window.stride + 1 for size, plan in zip(data.shape[1:-1], plans, strict=True)]
    after = [
        int(plan.output) - size - first + more
        for plan, size, first, more in zip(plans, written, before, reach, strict=True)
    ]
    found = mx.conv_general(
        data,
        weights,
        padding=([max(one, 0) for one in before], [max(one, 0) for one in after]),
        kernel_dilation=[plan.window.dilation for plan in plans],
        input_dilation=[plan.window.stride for plan in plans],
        groups=group,
        flip=True,
    )
    for axis, (first, plan) in enumerate(zip(before, plans, strict=True), 1):
        skipped = max(-first, 0)
        found = found[(*(slice(None),) * axis, slice(skipped, skipped + int(plan.output)))]
    return found
