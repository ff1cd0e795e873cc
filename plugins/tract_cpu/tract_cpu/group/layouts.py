"""In which blocks of channels tensors are, and which are plain, as groups are decided on."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.pad import Pad
from tract_cpu.group.forms import forms_of_inputs, stays_in_blocks
from tract_cpu.group.known import CpuKnown
from tract_cpu.program.form import Form


class Layouts:
    """How each tensor is there by now: plain, which is with its axes as its shape says, in blocks, or both.

    ``padded``: results of `Pad` that will be in blocks, as their input is written inside of them.
    """

    def __init__(self, known: CpuKnown) -> None:
        self._known = known
        self._plain: set[OutletId] = set(known.model.inputs)
        self._blocks: dict[OutletId, Form] = {}
        self._born: dict[OutletId, Form] = {}
        self.padded: dict[OutletId, Form] = {}

    def only_blocked(self, outlet: OutletId) -> Form | None:
        """The blocks of a tensor that is there in blocks, and not plain."""
        return None if self.is_plain(outlet) else self._blocks.get(outlet)

    def is_plain(self, outlet: OutletId) -> bool:
        """Whether a tensor is there plain."""
        return outlet in self._plain or self._known.constant_array(outlet) is not None

    def born_as(self, outlet: OutletId, form: Form) -> bool:
        """Whether a tensor was written in blocks of a form, or is there so by now."""
        return self._born.get(outlet) == form or self._blocks.get(outlet) == form

    def read(self, outlet: OutletId, form: Form | None) -> None:
        """Somebody reads a tensor in blocks of a form, or plain: it is there so from now on."""
        if form is not None and self.born_as(outlet, form):
            return
        self._plain.add(outlet)  # what is in no such blocks is brought into them from there
        if form is not None and self._known.model.outlet_fact(outlet).shape[form.axis] == form.channels:
            self._blocks[outlet] = form

    def write(self, outlet: OutletId, form: Form | None) -> None:
        """A tensor is written in blocks of a form, or plain."""
        if form is None:
            self._plain.add(outlet)
            return
        self._blocks[outlet] = self._born[outlet] = form
        for reader in self._known.model.outlet(outlet).successors:
            forms = forms_of_inputs(self._known, OutletId(reader.node))
            if forms is not None and forms.parts[reader.slot] == form:
                return  # it is a part of a larger tensor
        for reader in self._known.model.outlet(outlet).successors:
            op, result = self._known.model.nodes[reader.node].op, OutletId(reader.node)
            free = isinstance(op, Pad) and result not in self.padded and self._known.why_unfit(reader.node) is None
            if free and stays_in_blocks(op, form):
                self.padded[result] = form
                return
