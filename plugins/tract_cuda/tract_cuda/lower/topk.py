"""The largest or smallest elements of rows: which loops there are over these."""

from __future__ import annotations

from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.positions import THREADS
from tract_cuda.kernels.topk import TopkPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import loops_over, numbers_of
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Topk)
def lower_topk(op: Topk, site: Site) -> str | None:
    """One kernel."""
    why = why_carried(site)
    if why is not None:
        return why
    source, asked = site.inputs()
    results = site.results()
    names = ("data", "values", "places")
    views = (source.as_bits(), results[0].as_bits(), results[1])
    others = [axis for axis in range(len(source.shape)) if axis != op.axis]
    loops, _ = loops_over([source.shape[a] for a in others], [[one.strides[a] for a in others] for one in views])
    given = numbers_of(loops, dict(zip(names, views, strict=True)))
    rows, length = given.pop("count"), source.shape[op.axis]
    assert not isinstance(rows, View)
    parts: Dim = ceil_div(length, THREADS)
    given |= {f"{name}.step": view.strides[op.axis] for name, view in zip(names, views, strict=True)}
    given |= {"length": length, "parts": parts, "kept": op.k, "asked": asked, "status": site.lowering.status()}
    plan = TopkPlan(source.element, asked.element, op.largest, len(loops))
    site.launch(plan, [rows * parts], given, results)
    return None
