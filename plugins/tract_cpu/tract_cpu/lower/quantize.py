"""Numbers into small integers and back: elements, with a scale and a zero point for all of them or along one axis."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.language.types import I8, U8
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.scales import along_axis, by_blocks
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.ops.quantize import DequantizeLinear, LookupTable, QuantizeLinear
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.draft.map import map_step
from tract_cpu.kernels.map import CHUNK
from tract_cpu.kernels.table import TablePlan, has_table
from tract_cpu.lower.gather import Indexed
from tract_cpu.place.blocked import in_blocks
from tract_cpu.place.chain import as_they_are, placed
from tract_cpu.place.wholes import result_for
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, QuantizeLinear, DequantizeLinear)
def lower_linear(op: QuantizeLinear | DequantizeLinear, site: Site) -> None:
    """The chain that begins with the operator; where blocks have one scale, for whole blocks, then for what is left."""
    views, shape = site.known_inputs(), tuple(site.facts()[0].shape)
    in_blocks = bool(op.block and views[1].shape)
    own = (views[0], *(view if in_blocks else along_axis(view, op.axis, shape) for view in views[1:]))
    chain = placed(site, as_they_are(site.lowering), own)
    tensors = (*chain.operands, site.lowering.new(chain.outlet))
    parts = list(by_blocks(tensors, op.axis, op.block)) if in_blocks else [tensors]
    steps = [map_step(chain.expression, part[:-1], part[-1], site.isa, ()) for part in parts]
    site.lowering.steps += steps[:-1]
    site.add(replace(steps[-1], nodes=chain.nodes))


@ROWS.row(MOVES, LookupTable)
def lower_table(op: LookupTable, site: Site) -> str | None:
    """Bytes are picked from registers where there is an instruction for it, else one by one.

    A negative byte counts from the end of the table, where the byte with the same bits is.
    """
    lowering, table = site.lowering, site.lowering.constant(op.table.array)
    assert table is not None  # the result has its type
    if table.element in (U8, I8) and has_table(site.isa):
        form, outlet = site.group.form, site.node.inputs[0]
        blocked = form and in_blocks(lowering, outlet, form)
        x = blocked.view if blocked is not None else lowering.known_view(outlet)
        site.add_all([_by_table(x, result_for(lowering, site.outlet, form), table)])
        return None
    (x,) = site.known_inputs()
    entries = View(table.storage, table.element, x.shape, (0,) * len(x.shape))
    limits = ((len(op.table.array), 1),)
    site.add_all([Indexed(entries, x, lowering.new(site.outlet), 0, limits, None).reading(site.isa)])
    return None


def _by_table(x: View, result: View, table: View) -> NativeStep:
    """The call that picks bytes."""
    loops = collapsed(result.shape, [x.strides, result.strides])
    if not loops or loops[-1].strides != (1, 1):
        loops.append(StridedLoop(1, (1, 1)))
    plan = TablePlan(len(loops))
    given = arguments(
        plan,
        sizes=[loop.size for loop in loops],
        table=table.address,
        source=x.address,
        target=result.address,
        loops=[{"strides": loop.strides} for loop in loops],
    )
    tasks: Dim = loops[0].size if len(loops) > 1 else ceil_div(loops[0].size, CHUNK)
    work = product(result.shape)
    return NativeStep(plan, given, tasks, (), (result.storage,), work=work)
