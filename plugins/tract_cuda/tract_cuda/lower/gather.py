"""Picking by positions that a tensor holds."""

from __future__ import annotations

from tract_llvm.program.views import View

from tract_core.dims import Dim, product
from tract_core.ops.gather import Gather
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.gather import THREADS, GatherPlan
from tract_cuda.lowering import Site
from tract_cuda.maps import is_multiple
from tract_cuda.table import CUDA

ROWS = Rows()

_ACCESS = 16
"""Bytes that one thread reads at once, at most."""


@ROWS.row(CUDA, Gather)
def lower_gather(op: Gather, site: Site) -> str | None:
    """One kernel: the axes before that which is picked from, and those behind it, each as one."""
    data, indices = site.compact_inputs()
    (result,) = site.results()
    if indices.element.bits < 8:
        return "kernels do not pick by so narrow integers"
    shape, axis = data.shape, op.axis
    outer, inner, picked = product(shape[:axis]), product(shape[axis + 1 :]), product(indices.shape)
    bits = data.as_bits()
    most = max(1, _ACCESS // bits.element.bytes)
    lanes = next(one for one in (most, most // 2, 1) if one and (is_multiple(inner, one) and _aligned(data, one)))
    count = outer * picked * inner // lanes
    given: dict[str, View | Dim] = {"count": count, "axis": shape[axis], "picked": picked, "inner": inner}
    given |= {"outer_step": shape[axis] * inner, "axis_step": inner, "inner_step": 1}
    given |= {"data": bits, "indices": indices, "result": result.as_bits(), "status": site.lowering.status()}
    plan = GatherPlan(bits.element, indices.element, lanes)
    site.launch(plan, [(count + THREADS - 1) // THREADS], given, [result])
    return None


def _aligned(view: View, lanes: int) -> bool:
    return is_multiple(view.offset, lanes)
