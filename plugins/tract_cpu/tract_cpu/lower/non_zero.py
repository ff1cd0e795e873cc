"""The places of elements that are not zero: they are counted, their number is read, and they are written."""

from __future__ import annotations

from tract_llvm.fuse.known import LATE
from tract_llvm.isa import Isa
from tract_llvm.language.types import INDEX
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.ops.non_zero import NonZero
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_core.runtime.host import HostNode
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.kernels.counted.non_zero import CHUNK, CountNonZeroPlan, NonZeroPlan
from tract_cpu.kernels.counted.starts import StartsPlan
from tract_cpu.kernels.runs import Run
from tract_cpu.program.arguments import arguments
from tract_cpu.program.counted import Counted
from tract_cpu.program.program import NativeStep
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import CPU

ROWS = Rows()


def count(lowering: Lowering, x: View) -> Counted:
    """Add the steps that count the elements of a tensor that are not zero."""
    x = lowering.contiguous(x)
    x = x if x.element.kind == "f" else x.as_bits()
    size = product(x.shape)
    parts = ceil_div(size, CHUNK)
    counts, plan = room_for_counts(lowering, parts), CountNonZeroPlan(x.element, Run.of(lowering.isa, x.element))
    given = arguments(plan, size=size, x=x.address, counts=counts.address)
    lowering.steps.append(NativeStep(plan, given, parts, (), (counts.storage,), work=size))
    return summed(lowering, x, counts)


def room_for_counts(lowering: Lowering, parts: Dim) -> View:
    """Memory for how much is found in each part, and behind it for how much all is."""
    return View.contiguous(lowering.room((parts + 1) * INDEX.bytes), INDEX, (parts + 1,))


def summed(lowering: Lowering, x: View, counts: View) -> Counted:
    """Add the step that sums what was counted in ``x``."""
    plan, parts = StartsPlan(), counts.shape[0] - 1
    given = arguments(plan, parts=parts, counts=counts.address)
    lowering.steps.append(NativeStep(plan, given, 1, (), (counts.storage,), work=parts))
    return Counted(x, counts)


def places(counted: Counted, result: View, isa: Isa) -> NativeStep:
    """The call that writes where these elements are, a column for each."""
    x = counted.x
    size, plan = product(x.shape), NonZeroPlan(x.element, len(x.shape), Run.of(isa, x.element))
    given = arguments(
        plan,
        size=size,
        count=result.shape[-1],
        inner=x.shape[1:],
        x=x.address,
        starts=counted.counts.address,
        result=result.address,
    )
    return NativeStep(plan, given, ceil_div(size, CHUNK), (), (result.storage,), work=size)


def _counted(lowering: Lowering, node: HostNode) -> Counted:
    return count(lowering, lowering.known_view(node.inputs[0]))


def _found(op: NonZero, shapes: list[Shape], total: Array) -> Reading:
    return Reading([[len(shapes[0]), int(total[0])]])


ROWS.add(READS, NonZero, Reads((0,), _found, counted=_counted))


@ROWS.row(CPU, NonZero)
def lower_non_zero(op: NonZero, site: Site) -> str | None:
    """A kernel that counts, and one that writes."""
    counted = site.counted()
    if counted is None:
        return LATE
    site.add_all([places(counted, site.lowering.new(site.outlet), site.isa)])
    return None
