"""Memory for plain tensors with elements around them, for those who write any strides: matrix products."""

from __future__ import annotations

from tract_llvm.program.storages import NOWHERE
from tract_llvm.program.views import View

from tract_core.model.graph import OutletId
from tract_core.ops.pad import Pad
from tract_cpu.draft.lowering import Lowering
from tract_cpu.lay_out.layout import Inside, Own
from tract_cpu.place.blocked import bordered, fill_around
from tract_cpu.place.padded import fill_of


def new_with_gaps(lowering: Lowering, outlet: OutletId) -> View:
    """Memory for a plain tensor, where the layout has it, with what is around it. Its rows may lie apart."""
    place = lowering.layout.plain.get(outlet)
    if outlet in lowering.around:  # the same kernel is tried again
        return lowering.known_view(outlet)
    if isinstance(place, Inside):
        return _inside(lowering, outlet, place.whole)
    if not isinstance(place, Own) or not place.border:
        return lowering.new(outlet)
    fact = lowering.model.outlet_fact(outlet)
    element = lowering.element(fact.datum_type.storage)
    assert element is not None  # who writes it knows its type
    view = bordered(lowering, View.contiguous(NOWHERE, element, fact.shape), place.border)
    lowering.place(outlet, view)
    lowering.around[outlet] = place.border
    return view


def _inside(lowering: Lowering, outlet: OutletId, padded: OutletId) -> View:
    """The place of a tensor in what a `Pad` makes of it."""
    op, view = lowering.model.nodes[padded.node].op, lowering.new(padded)
    assert isinstance(op, Pad)  # as the layout says
    fill_around(lowering, view, op.pads, fill_of(op, view.element))
    for axis, (before, _) in enumerate(op.pads):
        view = view.part(axis, before, lowering.model.outlet_fact(outlet).shape[axis])
    lowering.place(outlet, view)
    lowering.around[outlet] = ((0, 0),) * len(op.pads)
    return view
