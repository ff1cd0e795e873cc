"""Products whose matrix each row chooses: the loops over rows, and the launch."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.language.types import F32
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.indexed_matmul import COLUMNS, IndexedMatMulPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.maps import vector_width
from tract_cuda.positions import loops_over, sizes_of
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, IndexedMatMul)
def lower_indexed_matmul(op: IndexedMatMul, site: Site) -> str | None:
    """Matrices in blocks are read as they lie."""
    why = why_carried(site)
    if why is not None:
        return why
    x, numbers = (site.lowering.view(site.node.inputs[slot]) for slot in (0, 2))
    rows = x.stretched((*numbers.shape, x.shape[-1]))
    matrices, columns, depth = site.lowering.model.outlet_fact(site.node.inputs[1]).shape
    loops, _ = loops_over(numbers.shape, [rows.strides[:-1], numbers.strides])
    plan, weights = _weights(site, rows, numbers, len(loops))
    (result,) = site.results()
    given: dict[str, View | Dim] = {**sizes_of([loop.size for loop in loops]), "columns": columns, "depth": depth}
    given |= {"rows": rows, "rows.step": rows.strides[-1], "numbers": numbers, "result": result}
    for axis, loop in enumerate(loops):
        given |= {f"rows.{axis}": loop.strides[0], f"numbers.{axis}": loop.strides[1]}
    given |= {"step": 0, "places0": matrices, "apart0": 1, "status": site.lowering.status()}
    for name, view in weights.items():
        given |= {name: view, **{f"{name}.{axis}": stride for axis, stride in enumerate(view.strides)}}
    grid = [product(numbers.shape) * ceil_div(columns, COLUMNS)]
    site.launch(plan, grid, given, [result])
    return None


def _weights(site: Site, rows: View, numbers: View, rank: int) -> tuple[IndexedMatMulPlan, dict[str, View]]:
    """The kernel, and where the matrices lie that it reads."""
    plan = IndexedMatMulPlan(rows.element, numbers.element, rank, 1, None)
    tensor = site.lowering.in_blocks(site.node.inputs[1])
    if tensor is not None and tensor.axis == 2 and plan.sums == F32:
        return replace(plan, form=tensor.form), dict(tensor.parts)
    weights = site.lowering.view(site.node.inputs[1])
    if rows.strides[-1] == weights.strides[-1] == 1:
        steps = [*rows.strides[:-1], *weights.strides[:-1], rows.shape[-1], rows.offset, weights.offset]
        plan = replace(plan, wide=vector_width([rows.element], steps))
    return plan, {"weights": weights}
