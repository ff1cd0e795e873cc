"""Numbers at equal distances."""

from __future__ import annotations

from tract_llvm.language.types import U64

from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.positions import THREADS
from tract_cuda.kernels.range import RangePlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Range)
def lower_range(op: Range, site: Site) -> str | None:
    """One kernel, which also sees whether the inputs give as many numbers as were announced."""
    bounds, why = site.inputs(), why_carried(site)
    if why is not None:
        return why
    if bounds[0].element == U64:
        return "kernels count with signed integers"
    (result,) = site.results()
    given = dict(zip(("start", "end", "step"), bounds, strict=True))
    given |= {"result": result, "status": site.lowering.status()}
    blocks = (op.length + THREADS) // THREADS  # one at least, which looks at the inputs
    site.launch(RangePlan(result.element), [blocks], {"length": op.length, **given}, [result])
    return None
