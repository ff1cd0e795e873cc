"""Tensors as they were some positions ago: views on memory that stays."""

from __future__ import annotations

from dataclasses import replace

from tract_cpu.draft.copies import copy_step
from tract_cpu.draft.lowering import Site
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start
from tract_cpu.table import MOVES

from tract_core.plugins.tables import Rows
from tract_pulse.cpu.tensor import form_for, form_there, tensor
from tract_pulse.cpu.window import window
from tract_pulse.ops.delay import Delay

ROWS = Rows()


@ROWS.row(GROUPS, Delay)
def group_delay(op: Delay, start: Start) -> CpuGroup:
    """Alone, in blocks of channels where these are wanted."""
    if not op.kept:
        return start.alone()
    form = form_there(start, op.axis)
    return start.alone(form or form_for(start, op.axis), list(start.read(form)))


@ROWS.row(MOVES, Delay)
def lower_delay(op: Delay, site: Site) -> str | None:
    """The pulse is copied behind what is kept; the result is a view, in blocks of channels where these are wanted."""
    if not op.kept:
        site.place(*site.known_inputs())
        return None
    why = site.lowering.why_not_kept(site.facts())
    if why is not None:
        return why
    x, form = tensor(site, 0), site.group.form
    seen, pulse = window(site, op.axis, op.kept, x.view.element, form), x.view.shape[op.axis]
    place = seen.view.part(op.axis, op.kept, pulse)
    pairs = [(place, x.view)] if form == x.form or form is None else form.parts(place, x.view)
    result = replace(seen, view=seen.view.part(op.axis, 0, pulse + op.overlap))
    result.place(site, [copy_step(out_of, into, site.isa, ()) for into, out_of in pairs])
    return None
