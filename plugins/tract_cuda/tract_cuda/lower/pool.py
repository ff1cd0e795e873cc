"""Pools, with channels side by side in memory."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.program.views import View

from tract_core.dims import Dim, product
from tract_core.ops.pool import MaxPool, Pool, SumPool
from tract_core.ops.reduce import Reducer
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.pool import THREADS, PoolPlan
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, MaxPool)
def lower_max_pool(op: MaxPool, site: Site) -> str | None:
    """The largest element of each window."""
    if op.indices is not None:
        return "there are no kernels for the places of the largest elements yet"
    _lower(op, site, Reducer.MAX, mean=False, padding=False)
    return None


@ROWS.row(CUDA, SumPool)
def lower_sum_pool(op: SumPool, site: Site) -> None:
    """The sum of each window, or its mean."""
    _lower(op, site, Reducer.SUM, mean=op.normalize, padding=op.normalize and op.count_include_pad)


def _lower(op: Pool, site: Site, reducer: Reducer, *, mean: bool, padding: bool) -> None:
    """``padding``: whether positions in it count."""
    (x,), layout, rank = site.inputs(), op.pool.data_format, op.pool.rank
    axes = op.pool.plan(op, x.shape)
    result = site.lowering.new_like(site.outlet, x)
    source, target = (_with_batch(one, batched=layout.has_n) for one in (x, result))
    order = (0, *range(2, 2 + rank), 1) if layout.channels_first else tuple(range(rank + 2))
    source, target = source.transposed(order), target.transposed(order)
    count = product(target.shape)
    given: dict[str, View | Dim] = {"count": count, "channels": target.shape[-1]}
    for number, one in enumerate(axes):
        given |= {f"size{number}": one.input, f"positions{number}": one.output, f"before{number}": one.before}
        given |= {f"stride{number}": one.window.stride, f"dilation{number}": one.window.dilation}
        given[f"low{number}"] = -one.before if padding else 0
        given[f"high{number}"] = one.input + one.after if padding else one.input
    for name, view in (("data", source), ("result", target)):
        given[name] = view
        given |= {f"{name}.{axis}": stride for axis, stride in enumerate(view.strides)}
    window = tuple(one.window.kernel for one in axes)
    plan = PoolPlan(x.element, reducer, window, mean)
    site.launch(plan, [(count + THREADS - 1) // THREADS], given, [result])


def _with_batch(view: View, *, batched: bool) -> View:
    return view if batched else replace(view, shape=(1, *view.shape), strides=(0, *view.strides))
