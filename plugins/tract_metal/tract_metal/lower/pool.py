"""Windows of which one element remains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from math import inf
from typing import Any

import mlx.core as mx

from tract_core.ops.extremes import lowest
from tract_core.ops.pool import MaxPool, Pool, SumPool, counts_of
from tract_core.ops.pool_spec import AxisPlan
from tract_core.plugins.tables import Rows
from tract_metal.elements import element_of, wide
from tract_metal.layout import Laid
from tract_metal.lower.binary import largest
from tract_metal.lower.conv import batched, channels_last, unbatched, with_channels_last
from tract_metal.lower.extremes import in_order
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, MaxPool)
def lower_max_pool(op: MaxPool, site: Site) -> Computed:
    """Position by position in the kernel, the larger one so far; MLX makes one kernel of that."""
    nothing = lowest(site.facts[0].datum_type.storage.numpy)
    if op.indices is not None:
        to = element_of(op.indices)
        assert to is not None, "it was looked at"
        return laid(lambda x: _with_places(op, x, nothing, to))
    return _pooled(op, lambda plans, x: in_order(x, lambda keys: _largest(plans, keys, nothing), least=False))


def _largest(plans: Sequence[AxisPlan], x: mx.array, nothing: Any) -> mx.array:
    nothing = -(1 << 31) if nothing == -inf else nothing
    return reduce(mx.maximum, _parts(plans, x, nothing))


def _with_places(op: MaxPool, x: Laid, nothing: Any, to: mx.Dtype) -> tuple[Laid, Laid]:
    """The largest elements, and where they are, the first of equals in the order of the kernel."""
    layout, order = op.pool.data_format, channels_last(op.pool.data_format, len(x.order))
    everywhere = Laid.plain(mx.reshape(mx.arange(x.array.size, dtype=mx.int64), x.shape))
    data, places = (batched(layout, one.as_laid(order)) for one in (x, everywhere))
    plans = op.pool.plan(op, x.shape)
    found = _first_largest(zip(_parts(plans, wide(data), nothing), _parts(plans, places, -1), strict=True))
    best, place = (
        Laid(unbatched(layout, one).astype(kind), order) for one, kind in zip(found, (data.dtype, to), strict=True)
    )
    return best, place


def _first_largest(parts: Iterator[tuple[mx.array, mx.array]]) -> tuple[mx.array, mx.array]:
    best, best_place = next(parts)
    for one, place in parts:
        # Any element of the input wins over padding, even one as low as the fill.
        better = (one > best) | ((best_place < 0) & (place >= 0)) | (mx.isnan(one) & mx.logical_not(mx.isnan(best)))
        zero = (one == 0) & (best == 0)  # equal, and yet 0.0 is what remains of both
        best = mx.where(better, one, mx.where(zero, largest(best, one), best))
        best_place = mx.where(better, place, best_place)
    return best, best_place


@ROWS.row(METAL, SumPool)
def lower_sum_pool(op: SumPool, site: Site) -> Computed:
    """The same, added up; then divided by how many elements each window counts."""

    def summed(plans: Sequence[AxisPlan], x: mx.array) -> mx.array:
        total = _sum(plans, x)
        if not op.normalize:
            return total.astype(x.dtype)
        counts = counts_of(plans, include_pad=op.count_include_pad)
        return total / mx.array(counts[..., None]).astype(total.dtype)

    return _pooled(op, summed)


def _pooled(op: Pool, function: Callable[[Sequence[AxisPlan], mx.array], mx.array]) -> Computed:
    """``function``: of data in the order batch, spatial axes, channels."""

    def pooled(x: Laid) -> Laid:
        plans = op.pool.plan(op, x.shape)
        return with_channels_last(op.pool.data_format, x, lambda data: function(plans, wide(data)).astype(data.dtype))

    return laid(pooled)


def _sum(plans: Sequence[AxisPlan], x: mx.array) -> mx.array:
    whole = all(int(plan.output) == 1 and plan.window.dilation == 1 for plan in plans)
    if whole and all(plan.before == 0 and int(plan.overhang) == 0 for plan in plans) and x.size:
        return mx.sum(x, axis=list(range(1, x.ndim - 1)), keepdims=True)
    zero: Any = mx.array(0, x.dtype)
    return reduce(lambda a, b: a + b, _parts(plans, x, 0), zero)


def _parts(plans: Sequence[AxisPlan], x: mx.array, fill: Any) -> Iterator[mx.array]:
    """What the outputs read at each position of the kernel, of data with ``fill`` around it."""
    ends = [(int(plan.before), max(int(plan.overhang), 0)) for plan in plans]
    padded = mx.pad(x, [(0, 0), *ends, (0, 0)], constant_values=mx.array(fill, x.dtype))
    for position in product(*(range(plan.window.kernel) for plan in plans)):
        parts = (_part(plan, index) for plan, index in zip(plans, position, strict=True))
        yield padded[(slice(None), *parts)]


def _part(plan: AxisPlan, index: int) -> slice:
    begin, stride = index * plan.window.dilation, plan.window.stride
    return slice(begin, begin + (int(plan.output) - 1) * stride + 1 if int(plan.output) else begin, stride)
