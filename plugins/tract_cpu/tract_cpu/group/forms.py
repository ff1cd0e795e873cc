"""In which blocks of channels operators want tensors, and give them: by sizes and types alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tract_core.dims import Dim, is_one
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv, Convolution
from tract_core.ops.deconv import Deconv
from tract_core.ops.pad import Pad, PadConstant
from tract_cpu.group.known import CpuKnown
from tract_cpu.program.form import Form, Forms


def form_of(known: CpuKnown, outlet: OutletId, axis: int) -> Form | None:
    """The form of a tensor whose channels are at an axis; ``None`` where their number is not known now."""
    element, channels = known.element_at(outlet), known.model.outlet_fact(outlet).shape[axis]
    if element is None or not isinstance(channels, int) or not channels:
        return None
    return Form(axis, channels, known.isa.lanes(element.computed.bits))


def fills_blocks(op: Convolution, outputs: Dim, inputs: Dim, block: int) -> bool:
    """Whether the groups of a convolution, of so many channels each, are whole blocks, or single channels."""
    return op.group == 1 or (outputs, inputs) == (1, 1) or (outputs % block == 0 and inputs % block == 0)


def form_read(known: CpuKnown, node: TypedNode) -> Form | None:
    """The blocks in which a convolution wants its data; ``None`` for other nodes, and where it reads it as it lies."""
    op = node.op
    if not isinstance(op, Conv | Deconv) or known.why_unfit(node.id) is not None:
        return None
    if isinstance(op, Conv) and op.q_output is not None:
        return None  # what it is written out as reads other tensors
    facts = [known.model.outlet_fact(outlet) for outlet in node.inputs[:2]]
    axis, rank = op.pool.data_format.c_axis(facts[0].rank), facts[1].rank
    form, channels = form_of(known, OutletId(node.id), axis), facts[0].shape[axis]
    outputs, inputs = (facts[1].shape[place(rank)] for place in (op.kernel_format.o_axis, op.kernel_format.i_axis))
    if form is None or not isinstance(channels, int):
        return None
    many = channels >= form.block or op.group > 1
    whole = fills_blocks(op, outputs // op.group, inputs, form.block)
    return Form(axis, channels, form.block) if many and whole else None


def forms_of_inputs(known: CpuKnown, outlet: OutletId) -> Forms | None:
    """The forms of what is put together; ``None`` where not all but the last one are made of whole blocks."""
    node = known.model.nodes[outlet.node]
    if not isinstance(node.op, TypedConcat) or known.why_unfit(outlet.node) is not None:
        return None
    if node.id not in known.forms:  # every input asks
        forms = [form_of(known, one, node.op.axis) for one in node.inputs]
        found = [form for form in forms if form is not None]
        fits = len(found) == len(forms) and all(form.channels % form.block == 0 for form in found[:-1])
        known.forms[node.id] = Forms.of(found) if fits else None
    return known.forms[node.id]


def stays_in_blocks(op: Any, form: Form) -> bool:
    """Whether a `Pad` leaves channels alone, and fills what is around with one number."""
    fits = isinstance(op, Pad) and isinstance(op.mode, PadConstant) and op.pads[form.axis] == (0, 0)
    return fits and any(map(any, op.pads))


def fits_in_blocks(known: CpuKnown, form: Form) -> Callable[[OutletId, tuple[Dim, ...]], bool]:
    """Whether a tensor can be an operand of what is computed of tensors in blocks: it has as many channels, or one."""

    def fits(outlet: OutletId, shape: tuple[Dim, ...]) -> bool:
        own = known.model.outlet_fact(outlet).shape
        return len(own) == len(shape) and (own[form.axis] == form.channels or is_one(own[form.axis]))

    return fits
