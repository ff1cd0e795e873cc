"""Tensors in blocks of channels that are put together along the channels: each is written into its part of the whole.

The whole gets its memory when the first of its parts is about to be written. It may be a part itself.
"""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.program.views import View

from tract_core.model.graph import OutletId
from tract_cpu.draft.lowering import Lowering
from tract_cpu.group.forms import forms_of_inputs
from tract_cpu.lay_out.layout import Inside, Own, PartOf
from tract_cpu.place.blocked import bordered, element_view, has_border
from tract_cpu.place.padded import inside_of
from tract_cpu.program.form import Blocked, Form


def new_blocked(lowering: Lowering, outlet: OutletId, form: Form) -> View:
    """Memory for a tensor in blocks, with the border of zeros that the convolutions which read it want."""
    found = lowering.blocked[outlet] = lowering.born_in_blocks[outlet] = _memory(lowering, outlet, form)
    return found.view


def result_for(lowering: Lowering, outlet: OutletId, form: Form | None) -> View:
    """Memory for a tensor, in blocks of a form or plain."""
    return lowering.new(outlet) if form is None else new_blocked(lowering, outlet, form)


def whole_for(lowering: Lowering, outlet: OutletId, form: Form) -> Blocked:
    """Memory for a concatenation in blocks of a form."""
    if outlet not in lowering.wholes:
        lowering.wholes[outlet] = _memory(lowering, outlet, form)
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
    """Where the layout has a tensor."""
    place = lowering.layout.blocks.get(outlet, Own())
    if isinstance(place, PartOf):
        forms = forms_of_inputs(lowering, place.whole)
        assert forms is not None  # as the layout says
        whole = whole_for(lowering, place.whole, forms.whole)
        return Blocked(form, forms.part_of(whole, place.slot), whole.border)
    if isinstance(place, Inside):
        return inside_of(lowering, outlet, form, place.whole)
    like = element_view(lowering, outlet, form)
    border = place.border if isinstance(place, Own) and place.border else ((0, 0),) * len(like.shape)
    fact = lowering.model.outlet_fact(outlet)
    is_held = like.element == lowering.element(fact.datum_type.storage)
    if is_held and not has_border(border) and form.lies_plain(len(fact.shape)):
        return Blocked(form, form.cut(lowering.new(outlet), 0, form.blocks, form.block), border)
    return Blocked(form, bordered(lowering, like, border), border)
