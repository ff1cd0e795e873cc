"""Running sums, products and extremes: which loops there are over rows."""

from __future__ import annotations

from typing import Final

from tract_core.dims import ceil_div, product
from tract_core.ops.cumsum import CumMax, CumMin, CumProd, CumSum, Running
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.cumsum import ITEMS, RunningPlan, ScanPlan
from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.arch import WARP
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import rows_along
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
    size, tensors = source.shape[op.axis], {"data": source, "result": result}
    if op.reverse:
        tensors = {name: one.part(op.axis, size - 1, size, -1) for name, one in tensors.items()}
    loops, given = rows_along(op.axis, tensors)
    rows = product([loop.size for loop in loops])
    given["length"] = size
    if loops[-1].strides == (1, 1) or (isinstance(size, int) and size <= _FEW):
        plan = RunningPlan(type(op), source.element, len(loops), op.exclusive)
        site.launch(plan, [ceil_div(rows, plan.threads)], given, [result])
        return None
    del given["count"]
    threads = WARP if isinstance(size, int) and size <= _SHORT else THREADS
    site.launch(ScanPlan(type(op), source.element, len(loops), op.exclusive, threads), [rows], given, [result])
    return None
