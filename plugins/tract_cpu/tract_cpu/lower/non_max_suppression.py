"""The best boxes without those that overlap with them: chosen, then written once it is known how many there are."""

from __future__ import annotations

from tract_llvm.fuse.known import LATE
from tract_llvm.language.types import INDEX
from tract_llvm.program.views import View

from tract_core.dims import Dim, dim_min
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_core.runtime.host import HostNode
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.kernels.counted.non_max_suppression import BoxesPlan, KeepBoxesPlan
from tract_cpu.lower.non_zero import room_for_counts, summed
from tract_cpu.program.arguments import arguments
from tract_cpu.program.counted import Counted
from tract_cpu.program.program import NativeStep
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import CPU

ROWS = Rows()

_WEIGHT = 16
"""About how many products take as long as one score, with what becomes of its box."""


def _counted(lowering: Lowering, node: HostNode) -> Counted:
    """Choose boxes: ``x`` has those of each class of each image."""
    boxes, scores, asked, overlap, least = map(lowering.known_view, node.inputs)
    boxes, scores = lowering.contiguous(boxes), lowering.contiguous(scores)
    least = lowering.converted(least, scores.element)  # which is how they are compared
    images, classes, size = scores.shape
    room, tasks = _room(lowering, node, size), images * classes
    kept = View.contiguous(lowering.room(tasks * room * INDEX.bytes), INDEX, (tasks, room))
    counts = room_for_counts(lowering, tasks)
    assert isinstance(node.op, NonMaxSuppression)  # that is whose row this is
    lanes = lowering.isa.lanes(scores.element.computed.bits)
    plan = KeepBoxesPlan(boxes.element, scores.element, asked.element, overlap.element, node.op.centred, lanes)
    given = arguments(
        plan,
        size=size,
        classes=classes,
        room=room,
        boxes=boxes.address,
        scores=scores.address,
        asked=asked.address,
        overlap=overlap.address,
        least=least.address,
        kept=kept.address,
        counts=counts.address,
    )
    results, work = (kept.storage, counts.storage), tasks * size
    step = NativeStep(plan, given, tasks, (), results, size * INDEX.bytes, work=work, weight=_WEIGHT)
    lowering.steps.append(step)
    return summed(lowering, kept, counts)


def _room(lowering: Lowering, node: HostNode, size: Dim) -> Dim:
    """For how many boxes there is room in each class of an image: for all, unless it is known that fewer are wanted."""
    most = lowering.constant_array(node.inputs[2])
    return size if most is None else dim_min(size, max(int(most), 0))


def _found(op: NonMaxSuppression, shapes: list[Shape], total: Array) -> Reading:
    return Reading([[int(total[0]), 3]])


ROWS.add(READS, NonMaxSuppression, Reads((0, 1, 2, 3, 4), _found, counted=_counted))


@ROWS.row(CPU, NonMaxSuppression)
def lower_non_max_suppression(op: NonMaxSuppression, site: Site) -> str | None:
    """A kernel that chooses, and one that writes."""
    counted = site.counted()
    if counted is None:
        return LATE
    (tasks, room), result = counted.x.shape, site.lowering.new(site.outlet)
    plan, classes = BoxesPlan(), site.facts()[1].shape[1]
    given = arguments(
        plan,
        classes=classes,
        room=room,
        kept=counted.x.address,
        starts=counted.counts.address,
        result=result.address,
    )
    site.add_all([NativeStep(plan, given, tasks, (), (result.storage,), work=result.shape[0] * 3)])
    return None
