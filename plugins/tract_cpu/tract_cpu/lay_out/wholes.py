"""Tensors in blocks of channels that are put together along the channels: each is written into its part of the whole.

The whole gets its memory when the first of its parts is about to be written. It may be a part itself.
"""

from __future__ import annotations

from dataclasses import replace

from tract_core.dims import dim_max
from tract_core.model.graph import OutletId
from tract_cpu.draft.lowering import Lowering
from tract_cpu.group.forms import forms_of_inputs
from tract_cpu.group.reach import border_for
from tract_cpu.lay_out.blocked import bordered, element_view
from tract_cpu.lay_out.padded import home_for
from tract_cpu.program.form import Blocked, Border, Form, Forms
from tract_cpu.program.views import View


def new_blocked(lowering: Lowering, outlet: OutletId, form: Form) -> View:
    """Memory for a tensor in blocks, with the border of zeros that the convolutions which read it want."""
    found = lowering.blocked[outlet] = lowering.born_in_blocks[outlet] = _memory(lowering, outlet, form)
    return found.view


def result_for(lowering: Lowering, outlet: OutletId, form: Form | None) -> View:
    """Memory for a tensor, in blocks of a form or plain."""
    return lowering.new(outlet) if form is None else new_blocked(lowering, outlet, form)


def whole_for(lowering: Lowering, outlet: OutletId, forms: Forms) -> Blocked:
    """Memory for a concatenation in blocks, whose inputs have these forms."""
    if outlet not in lowering.wholes:
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
        whole = whole_for(lowering, result, forms)
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
