"""Local response normalisation, with channels wherever they lie."""

from __future__ import annotations

from tract_llvm.program.views import memory_order

from tract_core.ops.lrn import Lrn
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.lrn import LrnPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Lrn)
def lower_lrn(op: Lrn, site: Site) -> str | None:
    """One kernel; axes lie in memory as those of the input do."""
    why = why_carried(site)
    if why is not None:
        return why
    (x,) = site.inputs()
    result = site.lowering.new_like(site.outlet, x)
    order = memory_order(result) or tuple(range(len(x.shape)))
    data, target = x.transposed(order), result.transposed(order)
    loops, (axis,) = loops_over(data.shape, [data.strides, target.strides], [order.index(op.axis)])
    plan = LrnPlan(x.element, len(loops), axis, op.size, op.alpha, op.beta, op.bias)
    launch_over(site, plan, loops, {"data": data, "result": target}, [result])
    return None
