"""Numbers at equal distances."""

from __future__ import annotations

from tract_llvm.language.types import U64

from tract_core.dims import ceil_div
from tract_core.ops.range import Range, count_steps
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.range import CHUNK, RangePlan
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import CPU

ROWS = Rows()


def _length(op: Range, shapes: list[Shape], start: Array, end: Array, step: Array) -> Reading:
    return Reading([[count_steps(start, end, step)]])


ROWS.add(READS, Range, Reads((0, 1, 2), _length, checks=True))


@ROWS.row(CPU, Range)
def lower_range(op: Range, site: Site) -> str | None:
    """One kernel, which also sees whether the inputs give as many numbers as were announced."""
    bounds = site.known_inputs()
    if bounds[0].element == U64:
        return "native code counts with signed integers"
    result = site.lowering.new(site.outlet)
    plan, (start, end, step) = RangePlan(result.element), (one.address for one in bounds)
    given = arguments(plan, length=op.length, start=start, end=end, step=step, result=result.address, status=STATUS)
    tasks = ceil_div(op.length + 1, CHUNK)  # one at least, which looks at the inputs
    site.add_all([NativeStep(plan, given, tasks, (), (result.storage,), work=op.length)])
    return None
