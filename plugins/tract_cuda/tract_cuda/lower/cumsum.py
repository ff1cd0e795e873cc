"""Running sums, products and extremes: which loops there are over rows."""

from __future__ import annotations

from typing import Final

from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div
from tract_core.ops.cumsum import CumMax, CumMin, CumProd, CumSum, Running
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.cumsum import ITEMS, RunningPlan, ScanPlan
from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.arch import WARP
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import loops_over, numbers_of
from tract_cuda.table import CUDA

ROWS = Rows()

_FEW: Final = 16
"""Rows of up to so many elements are best left to one thread each."""

_SHORT: Final = WARP * ITEMS
"""Rows of up to so many elements want one warp."""


@ROWS.row(CUDA, CumSum, CumProd, CumMax, CumMin)
def lower_cumsum(op: Running, site: Site) -> str | None:
    """Along one axis; from the other end, of a view that goes backwards."""
    why = why_carried(site)
    if why is not None:
        return why
    (source,), (result,) = site.inputs(), site.results()
    views, size = (source, result), source.shape[op.axis]
    if op.reverse:
        views = (source.part(op.axis, size - 1, size, -1), result.part(op.axis, size - 1, size, -1))
    others = [axis for axis in range(len(source.shape)) if axis != op.axis]
    loops, _ = loops_over([source.shape[a] for a in others], [[one.strides[a] for a in others] for one in views])
    given: dict[str, View | Dim] = {"length": size}
    given |= {f"{name}.step": one.strides[op.axis] for name, one in zip(("data", "result"), views, strict=True)}
    numbers = numbers_of(loops, dict(zip(("data", "result"), views, strict=True)))
    count = numbers["count"]
    assert not isinstance(count, View)
    if loops[-1].strides == (1, 1) or (isinstance(size, int) and size <= _FEW):
        plan = RunningPlan(type(op), source.element, len(loops), op.exclusive)
        site.launch(plan, [ceil_div(count, plan.threads)], {**numbers, **given}, [result])
        return None
    threads = WARP if isinstance(size, int) and size <= _SHORT else THREADS
    del numbers["count"]
    plan = ScanPlan(type(op), source.element, len(loops), op.exclusive, threads)
    site.launch(plan, [count], {**numbers, **given}, [result])
    return None
