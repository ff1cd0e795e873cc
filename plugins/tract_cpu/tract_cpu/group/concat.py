"""Tensors one after the other: in blocks of channels where inputs are there so only."""

from __future__ import annotations

from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_cpu.group.forms import forms_of_inputs
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start

ROWS = Rows()


@ROWS.row(GROUPS, TypedConcat)
def group_concat(op: TypedConcat, start: Start) -> CpuGroup:
    """Alone."""
    blocked = [start.only_blocked(slot) for slot in range(len(start.node.inputs))]
    forms = forms_of_inputs(start.known, start.outlet)
    if forms is None or not any(form is not None and form.axis == op.axis for form in blocked):
        return start.alone()
    layouts, reads = start.walk.layouts, zip(start.node.inputs, forms.parts, strict=True)
    return start.alone(forms.whole, [(one, form if layouts.born_as(one, form) else None) for one, form in reads])
