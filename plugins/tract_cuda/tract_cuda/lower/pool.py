"""Pools: one thread for each window, neighbours as the elements lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.program.views import View, contiguous_strides, memory_order

from tract_core.dims import Dim, ceil_div, product
from tract_core.model.graph import OutletId
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.pool_spec import AxisPlan, PoolSpec
from tract_core.ops.reduce import Reducer
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.pool import PoolPlan
from tract_cuda.kernels.positions import THREADS
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import strides_of
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
    count = product(target.shape)
    given: dict[str, View | Dim] = {"count": count}
    given |= {f"size{axis}": size for axis, size in enumerate(target.shape)}
    padding = isinstance(op, SumPool) and op.normalize and op.count_include_pad
    given |= along(axes)
    for number, one in enumerate(axes):
        given[f"low{number}"] = -one.before if padding else 0
        given[f"high{number}"] = one.input + one.after if padding else one.input
    tensors = {"data": source, "result": target}
    if places is not None:
        tensors["places"] = in_order(op.pool, places)
        numbers = in_order(op.pool, replace(x, strides=contiguous_strides(x.shape)))
        given |= {f"number{axis}": stride for axis, stride in enumerate(numbers.strides)}
    given |= strides_of(tensors)
    window, order = tuple(one.window.kernel for one in axes), memory_order(target) or tuple(range(rank + 2))
    plan = replace(plan, window=window, places=None if places is None else places.element, order=order)
    site.launch(plan, [ceil_div(count, THREADS)], given, [result, *([] if places is None else [places])])


def in_order(pool: PoolSpec, view: View) -> View:
    """With a batch, and the channels last."""
    layout, rank = pool.data_format, pool.rank
    if not layout.has_n:
        view = replace(view, shape=(1, *view.shape), strides=(0, *view.strides))
    return view.transposed((0, *range(2, 2 + rank), 1)) if layout.channels_first else view


def along(axes: Sequence[AxisPlan]) -> dict[str, View | Dim]:
    """What kernels are told of windows along spatial axes."""
    given: dict[str, View | Dim] = {}
    for number, one in enumerate(axes):
        given |= {f"input{number}": one.input, f"before{number}": one.before}
        given |= {f"stride{number}": one.window.stride, f"dilation{number}": one.window.dilation}
    return given
