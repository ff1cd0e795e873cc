"""Pools: one thread for each window, neighbours as the elements lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.program.views import View, contiguous_strides, memory_order

from tract_core.dims import Dim, ceil_div, product
from tract_core.model.graph import OutletId
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.pool_spec import AxisPlan
from tract_core.ops.reduce import Reducer
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.pool import PoolPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lower.spatial import along, in_order
from tract_cuda.lowering import Site
from tract_cuda.positions import counted, strides_of
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, MaxPool)
def lower_max_pool(op: MaxPool, site: Site) -> str | None:
    """The largest element of each window, and where it is if that is asked for."""
    why = why_carried(site)
    if why is not None:
        return why
    places = None if op.indices is None else site.lowering.new(OutletId(site.node.node, 1))
    _lower(op, site, PoolPlan(site.inputs()[0].element, Reducer.MAX, (), False, None, ()), places)
    return None


@ROWS.row(CUDA, SumPool)
def lower_sum_pool(op: SumPool, site: Site) -> str | None:
    """The sum of each window, or its mean."""
    why = why_carried(site)
    if why is None:
        _lower(op, site, PoolPlan(site.inputs()[0].element, Reducer.SUM, (), op.normalize, None, ()))
    return why


def _lower(op: Pool, site: Site, plan: PoolPlan, places: View | None = None) -> None:
    """``plan``: what is computed of the elements of a window."""
    (x,), rank = site.inputs(), op.pool.rank
    axes = op.pool.plan(op, x.shape)
    result = site.lowering.new_like(site.outlet, x)
    source, target = (in_order(op.pool, one) for one in (x, result))
    given: dict[str, View | Dim] = {**counted(target.shape), **along(axes), **_counting(op, axes)}
    given |= strides_of({"data": source, "result": target})
    window, order = tuple(one.window.kernel for one in axes), memory_order(target) or tuple(range(rank + 2))
    plan, writes = replace(plan, window=window, order=order), [result]
    if places is not None:
        given |= _told(op, x, places)
        plan, writes = replace(plan, places=places.element), [result, places]
    site.launch(plan, [ceil_div(product(target.shape), plan.threads)], given, writes)


def _counting(op: Pool, axes: Sequence[AxisPlan]) -> dict[str, Dim]:
    """From where to where positions count along each axis: those of the padding do for some means."""
    padding = isinstance(op, SumPool) and op.normalize and op.count_include_pad
    given: dict[str, Dim] = {}
    for number, one in enumerate(axes):
        given[f"low{number}"] = -one.before if padding else 0
        given[f"high{number}"] = one.input + one.after if padding else one.input
    return given


def _told(op: Pool, x: View, places: View) -> dict[str, View | Dim]:
    """Where places are written, and how they are told: as positions of the input without gaps."""
    numbers = in_order(op.pool, replace(x, strides=contiguous_strides(x.shape)))
    steps = {f"number{axis}": stride for axis, stride in enumerate(numbers.strides)}
    return strides_of({"places": in_order(op.pool, places)}) | steps
