"""The largest or smallest elements of rows: which loops there are over these."""

from __future__ import annotations

from tract_core.dims import ceil_div, product
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.positions import THREADS
from tract_cuda.kernels.topk import TopkPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import rows_along
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Topk)
def lower_topk(op: Topk, site: Site) -> str | None:
    """One kernel."""
    why = why_carried(site)
    if why is not None:
        return why
    (source, asked), (values, places) = site.inputs(), site.results()
    tensors = {"data": source.as_bits(), "values": values.as_bits(), "places": places}
    loops, given = rows_along(op.axis, tensors)
    del given["count"]
    length, rows = source.shape[op.axis], product([loop.size for loop in loops])
    parts = ceil_div(length, THREADS)
    given |= {"length": length, "parts": parts, "kept": op.k, "asked": asked, "status": site.lowering.status()}
    plan = TopkPlan(source.element, asked.element, op.largest, len(loops))
    site.launch(plan, [rows * parts], given, [values, places])
    return None
