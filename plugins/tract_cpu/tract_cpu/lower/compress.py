"""What a mask selects along an axis: how much that is is counted, where it is is written, and so much is copied."""

from __future__ import annotations

from tract_llvm.fuse.known import LATE
from tract_llvm.language.types import INDEX
from tract_llvm.program.views import View

from tract_core.ops.compress import Compress, check_condition
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_core.runtime.host import HostNode
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.lower.gather import gathered
from tract_cpu.lower.non_zero import count, places
from tract_cpu.program.counted import Counted
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


def _counted(lowering: Lowering, node: HostNode) -> Counted:
    return count(lowering, lowering.known_view(node.inputs[1]))


def _selected(op: Compress, shapes: list[Shape], total: Array) -> Reading:
    x, condition = shapes
    check_condition(op, x, condition)
    return Reading([[*x[: op.axis], int(total[0]), *x[op.axis + 1 :]]])


ROWS.add(READS, Compress, Reads((1,), _selected, counted=_counted))


@ROWS.row(MOVES, Compress)
def lower_compress(op: Compress, site: Site) -> str | None:
    """The places that are selected, then what there is at these."""
    counted = site.counted()
    if counted is None:
        return LATE
    x, _ = site.known_inputs()
    size = site.node.facts[0].shape[op.axis]
    numbers = View.contiguous(site.lowering.room(size * INDEX.bytes), INDEX, (size,))
    site.lowering.steps.append(places(counted, numbers, site.isa))
    site.add_all(gathered(site, op.axis, x, numbers))
    return None
