"""Local response normalisation: which planes the channels are."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.program.views import View

from tract_core.dims import is_one, product
from tract_core.ops.lrn import Lrn
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.lrn import LrnPlan
from tract_cpu.kernels.runs import Run
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU

ROWS = Rows()


@ROWS.row(CPU, Lrn)
def lower_lrn(op: Lrn, site: Site) -> str | None:
    """One kernel on channels that are planes: channels that come last are turned around, and back."""
    lowering, axis = site.lowering, op.axis
    x = lowering.contiguous(site.known_inputs()[0])
    result = lowering.new(site.outlet)
    if not is_one(product(x.shape[axis + 1 :])):
        site.add_all([_step(op, site, x, result)])
        return None
    order = (axis, *(one for one in range(len(x.shape)) if one != axis))
    source = lowering.contiguous(x.transposed(order))
    room = lowering.room(product(x.shape) * x.element.bytes)
    computed = View.contiguous(room, x.element, source.shape)
    lowering.steps.append(_step(replace(op, axis=0), site, source, computed))
    site.copy_into(computed, result.transposed(order))
    return None


def _step(op: Lrn, site: Site, source: View, result: View) -> NativeStep:
    """The call of the kernel, on tensors without gaps."""
    shape, axis = source.shape, op.axis
    element, plane = source.element, product(source.shape[axis + 1 :])
    run = Run(site.isa.lanes(element.computed.bits), site.isa.masks_bits <= element.bits)
    plan = LrnPlan(element, op.size, op.alpha, op.beta, op.bias, run)
    given = arguments(plan, source=source.address, result=result.address, channels=shape[axis], plane=plane)
    work = product(shape) * op.size
    return NativeStep(plan, given, product(shape[: axis + 1]), (), (result.storage,), work=work)
