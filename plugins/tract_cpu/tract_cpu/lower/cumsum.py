"""Running sums: which loops they have."""

from __future__ import annotations

from tract_llvm.program.loops import StridedLoop, collapsed

from tract_core.dims import ceil_div, product
from tract_core.ops.cumsum import CumSum
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.cumsum import RunningPlan
from tract_cpu.program.arguments import arguments, each_loop
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU

ROWS = Rows()


@ROWS.row(CPU, CumSum)
def lower_cumsum(op: CumSum, site: Site) -> str | None:
    """Sums along one axis; from the other end, of a view that goes backwards."""
    source, result = site.known_inputs()[0], site.lowering.new(site.outlet)
    storage, size = result.storage, source.shape[op.axis]
    if op.reverse:
        source, result = (one.part(op.axis, size - 1, size, -1) for one in (source, result))
    views = (source, result)
    others = [axis for axis in range(len(source.shape)) if axis != op.axis]
    loops = collapsed([source.shape[a] for a in others], [[one.strides[a] for a in others] for one in views])
    loops = loops or [StridedLoop(1, (1, 1))]
    across = all(stride == 1 for stride in loops[-1].strides)
    lanes = site.isa.lanes(source.element.computed.bits) if across else 0
    masked = bool(lanes) and site.isa.masks_bits <= source.element.bits
    plan = RunningPlan(source.element, len(loops), lanes, masked, op.exclusive)
    given = arguments(
        plan,
        source=source.address,
        target=result.address,
        size=size,
        steps=[one.strides[op.axis] for one in views],
        outer=each_loop(loops),
    )
    tasks = product(loop.size for loop in loops[:-1]) * ceil_div(loops[-1].size, plan.block)
    work = product(source.shape)
    site.add(NativeStep(plan, given, tasks, (site.node.node,), (storage,), work=work))
    return None
