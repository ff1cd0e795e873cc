"""Pulses in memory, with their axes as the shape says, or in blocks of channels: streams come along other axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_cpu.draft.copies import copy_step
from tract_cpu.draft.lowering import Site
from tract_cpu.group.forms import form_read
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.reach import border_for
from tract_cpu.group.start import Start
from tract_cpu.place.blocked import bordered, in_blocks
from tract_cpu.program.form import Blocked, Border, Form
from tract_cpu.program.program import NativeStep
from tract_llvm.program.views import View

from tract_core.dims import dim_max
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_pulse.ops.concat import PulseConcat
from tract_pulse.ops.delay import Delay
from tract_pulse.ops.mask import PulseMask
from tract_pulse.ops.pad import PulsePad


@frozen
class PlacedTensor:
    """A tensor in memory. ``form``: how its channels are cut, ``None`` where its axes are as its shape says.

    ``border``: the zeros around it.
    """

    view: View
    form: Form | None
    border: Border

    def place(self, site: Site, steps: Sequence[NativeStep]) -> None:
        """Let it be the result of a node, which the steps compute."""
        if self.form is None:
            site.lowering.place(site.outlet, self.view)
        else:
            found = Blocked(self.form, self.view, self.border)
            site.lowering.blocked[site.outlet] = site.lowering.born_in_blocks[site.outlet] = found
        site.add_all(steps)


def form_there(start: Start, axis: int) -> Form | None:
    """The blocks in which the first input is there, if they do not cut the positions of the stream, along ``axis``."""
    form = start.only_blocked(0)
    return form if form is not None and form.axis != axis else None


def tensor(site: Site, slot: int) -> PlacedTensor:
    """An input, in the blocks in which the group reads it, or plain."""
    lowering, outlet, form = site.lowering, site.node.inputs[slot], site.group.reads[slot][1]
    blocked = form and in_blocks(lowering, outlet, form)
    if blocked is not None:
        return PlacedTensor(blocked.view, blocked.form, blocked.border)
    view = lowering.known_view(outlet)
    return PlacedTensor(view, None, ((0, 0),) * len(view.shape))


def overwritten(site: Site, slot: int) -> tuple[PlacedTensor, list[NativeStep]]:
    """An input that the node may write to, and how it comes there: where nobody else sees it, it stays where it is."""
    outlet, lowering = site.node.inputs[slot], site.lowering
    found = tensor(site, slot)
    if lowering.is_alone(outlet):
        return found, []
    own = bordered(lowering, found.view, found.border)
    return PlacedTensor(own, found.form, found.border), [copy_step(found.view, own, site.isa, ())]


def form_for(start: Start, axis: int) -> Form | None:
    """The blocks in which all that read the result want it; ``None`` where one of them reads it as it lies."""
    forms = {
        form_read(start.known, start.model.nodes[node]) if slot == 0 else None
        for _, node, slot in _readers(start.known, start.outlet)
    }
    form = forms.pop() if len(forms) == 1 else None
    return form if form is not None and form.axis != axis else None


def border_around(site: Site, form: Form, axis: int) -> Border:
    """The zeros that those who read the result want around it, but for the axis of the stream."""
    outlets = {outlet: border_for(site.lowering, outlet, form) for outlet, _, _ in _readers(site.lowering, site.outlet)}
    found: Border = ((0, 0),) * (len(site.node.facts[0].shape) + 1)
    for border in outlets.values():
        pairs = zip(found, border, strict=True)
        found = tuple((dim_max(one[0], other[0]), dim_max(one[1], other[1])) for one, other in pairs)
    return tuple((0, 0) if place == axis else ends for place, ends in enumerate(found))


def _readers(known: CpuKnown, outlet: OutletId) -> Iterator[tuple[OutletId, int, int]]:
    """Who reads a tensor, or what is written over it: the outlet that they read, their node, and the slot there."""
    for reader in sorted(known.model.outlet(outlet).successors):
        if isinstance(known.model.nodes[reader.node].op, Delay | PulsePad | PulseMask | PulseConcat):
            yield from _readers(known, OutletId(reader.node))
        else:
            yield outlet, reader.node, reader.slot
