"""The part of matrices above or below a diagonal."""

from __future__ import annotations

from tract_llvm.language.types import U64

from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.trilu import TriluPlan
from tract_cuda.lowering import Site
from tract_cuda.positions import launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Trilu)
def lower_trilu(op: Trilu, site: Site) -> str | None:
    """One kernel."""
    x, diagonal = site.inputs()
    if diagonal.element == U64:
        return "kernels count diagonals with signed integers"
    (result,) = site.results()
    data, target = x.as_bits(), result.as_bits()
    rank = len(x.shape)
    loops, _ = loops_over(x.shape, [data.strides, target.strides], [rank - 2, rank - 1])
    plan = TriluPlan(data.element, diagonal.element, op.upper, len(loops))
    launch_over(site, plan, loops, {"data": data, "result": target}, [result], diagonal=diagonal)
    return None
