"""Sizes that are part of the model, and known when a run begins."""

from __future__ import annotations

from typing import Final

from tract_llvm.fuse.known import LATE
from tract_llvm.language.types import I64

from tract_core.dims import symbols_of
from tract_core.model.const import Const
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.sizes import SizesPlan
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU

ROWS = Rows()

MOST: Final = 64
"""How many sizes one kernel writes."""


@ROWS.row(CPU, Const)
def lower_sizes(op: Const, site: Site) -> str | None:
    """Arrays of numbers are read where they are; this is about those of sizes."""
    sizes = op.value.array.reshape(-1).tolist()
    if site.result() != I64 or len(sizes) > MOST:
        return f"native code writes up to {MOST} sizes, as i64"
    if any(not symbols_of(size) <= site.lowering.given for size in sizes):
        return LATE
    result = site.lowering.new(site.outlet)
    plan = SizesPlan(len(sizes))
    given = arguments(plan, result=result.address, sizes=[{"size": size} for size in sizes])
    site.add_all([NativeStep(plan, given, 1, (), (result.storage,))])
    return None
