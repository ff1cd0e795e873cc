"""The largest or smallest elements of rows: which loops there are."""

from __future__ import annotations

from typing import Final

from tract_llvm.program.loops import collapsed

from tract_core.dims import comparison, product
from tract_core.ops.topk import Topk, check_count
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.topk import TopkPlan
from tract_cpu.program.arguments import arguments, each_loop
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import CPU

ROWS = Rows()

_MOST: Final = 256
"""How many are kept sorted, element by element; sorting the whole row is quicker for more."""


def _kept(op: Topk, shapes: list[Shape], k: Array) -> Reading:
    sizes = list(shapes[0])
    check_count(op, sizes[op.axis], int(k))
    sizes[op.axis] = int(k)
    return Reading([sizes, sizes])


ROWS.add(READS, Topk, Reads((1,), _kept))


@ROWS.row(CPU, Topk)
def lower_topk(op: Topk, site: Site) -> str | None:
    """Elements and their positions."""
    if isinstance(op.k, int) and op.k > _MOST:
        return f"native code keeps up to {_MOST} elements of a row"
    kept = (op.k + 1) * comparison(op.k, "<=", _MOST) - 1  # what the run asks for differs where that is -1
    source, count = site.known_inputs()
    results = site.results()
    views = (source, *results)
    others = [axis for axis in range(len(source.shape)) if axis != op.axis]
    loops = collapsed([source.shape[a] for a in others], [[one.strides[a] for a in others] for one in views])
    lanes = site.isa.lanes(source.element.computed.bits) if source.strides[op.axis] == 1 else 0
    plan = TopkPlan(source.element, count.element, op.largest, len(loops), lanes if source.element.kind != "b" else 0)
    given = arguments(
        plan,
        size=source.shape[op.axis],
        kept=kept,
        status=STATUS,
        asked=count.address,
        source=source.address,
        values=results[0].address,
        positions=results[1].address,
        steps=[one.strides[op.axis] for one in views],
        outer=each_loop(loops),
    )
    rows = product(loop.size for loop in loops)
    work = product(source.shape)
    storages = tuple(one.storage for one in results)
    site.add(NativeStep(plan, given, rows, (site.node.node,), storages, work=work))
    return None
