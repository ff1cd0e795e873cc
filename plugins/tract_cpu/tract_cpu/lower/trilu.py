"""The part of matrices above or below a diagonal."""

from __future__ import annotations

from tract_llvm.language.types import U64

from tract_core.dims import product
from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.trilu import TriluPlan
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, Trilu)
def lower_trilu(op: Trilu, site: Site) -> str | None:
    """A kernel that goes over rows."""
    x, diagonal = site.known_inputs()
    if diagonal.element == U64:
        return "native code counts diagonals with signed integers"
    x, result = site.lowering.contiguous(x).as_bits(), site.lowering.new(site.outlet)
    plan = TriluPlan(x.element, diagonal.element, op.upper, Run.of(site.isa, x.element))
    rows, columns = x.shape[-2:]
    given = arguments(
        plan, rows=rows, columns=columns, source=x.address, diagonal=diagonal.address, target=result.address
    )
    tasks = product(x.shape[:-1])
    site.add_all([NativeStep(plan, given, tasks, (), (result.storage,), work=product(x.shape))])
    return None
