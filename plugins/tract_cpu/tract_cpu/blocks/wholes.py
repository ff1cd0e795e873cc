"""Tensors in blocks of channels that are put together along the channels: each is written into its part of the whole.

The whole gets its memory when the first of its parts is about to be written. It may be a part itself.
"""

from __future__ import annotations

from dataclasses import replace

from tract_core.dims import dim_max
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_cpu.blocks.blocked import border_for, bordered, element_view, form_of
from tract_cpu.blocks.padded import home_for
from tract_cpu.draft.lowering import Lowering
from tract_cpu.program.form import Blocked, Border, Form, Forms
from tract_cpu.program.views import View


def new_blocked(lowering: Lowering, outlet: OutletId, form: Form) -> View:
    """Memory for a tensor in blocks, with the border of zeros that the convolutions which read it want."""
    found = lowering.blocked[outlet] = lowering.born_in_blocks[outlet] = _memory(lowering, outlet, form)
    return found.view


def whole_for(lowering: Lowering, outlet: OutletId) -> Blocked | None:
    """Memory for a concatenation in blocks; ``None`` where its inputs do not begin with a block each."""
    if outlet not in lowering.wholes:
        forms = forms_of_inputs(lowering, outlet)
        if forms is None:
            return None
        lowering.wholes[outlet] = _memory(lowering, outlet, forms.whole)
    return lowering.wholes[outlet]


def joined(lowering: Lowering, outlet: OutletId) -> Blocked | None:
    """A concatenation whose inputs lie in blocks one behind the other already: nothing need be done for it."""
    forms = forms_of_inputs(lowering, outlet)
    born = [lowering.born_in_blocks.get(one) for one in lowering.model.nodes[outlet.node].inputs]
    found = [one for one in born if one is not None]
    if forms is None or len(found) < len(born):
        return None
    shape = forms.whole.shape(lowering.model.outlet_fact(outlet).shape)
    whole = replace(found[0], form=forms.whole, view=replace(found[0].view, shape=shape))
    same = all(forms.part_of(whole, slot) == one.view for slot, one in enumerate(found))
    return whole if same else None


def forms_of_inputs(lowering: Lowering, outlet: OutletId) -> Forms | None:
    """The forms of what is put together; ``None`` where not all but the last one are made of whole blocks."""
    node = lowering.model.nodes[outlet.node]
    if not isinstance(node.op, TypedConcat) or lowering.why_unfit(outlet.node) is not None:
        return None
    if node.id not in lowering.forms:  # every input asks
        forms = [form_of(lowering, one, node.op.axis) for one in node.inputs]
        found = [form for form in forms if form is not None]
        fits = len(found) == len(forms) and all(form.channels % form.block == 0 for form in found[:-1])
        lowering.forms[node.id] = Forms.of(found) if fits else None
    return lowering.forms[node.id]


def _memory(lowering: Lowering, outlet: OutletId, form: Form) -> Blocked:
    """A part of the largest whole that the tensor belongs to, or memory of its own."""
    wholes: list[tuple[OutletId, int, Forms]] = []
    for reader in lowering.model.outlet(outlet).successors:
        result = OutletId(reader.node)
        forms = forms_of_inputs(lowering, result)
        if forms is not None and forms.parts[reader.slot] == form:
            wholes.append((result, reader.slot, forms))
    if wholes:
        result, slot, forms = max(wholes, key=lambda one: one[2].whole.channels)
        whole = whole_for(lowering, result)
        if whole is not None:
            return Blocked(form, forms.part_of(whole, slot), whole.border)
    home = home_for(lowering, outlet, form)
    if home is not None:
        return home
    border = _border(lowering, outlet, form)
    return Blocked(form, bordered(lowering, element_view(lowering, outlet, form), border), border)


def _border(lowering: Lowering, outlet: OutletId, form: Form) -> Border:
    """What is wanted around a tensor and around its parts."""
    border = border_for(lowering, outlet, form)
    forms = forms_of_inputs(lowering, outlet)
    for one, part in zip(lowering.model.nodes[outlet.node].inputs, forms.parts, strict=True) if forms else ():
        pairs = zip(border, _border(lowering, one, part), strict=True)
        border = tuple((dim_max(a, c), dim_max(b, d)) for (a, b), (c, d) in pairs)
    return border
