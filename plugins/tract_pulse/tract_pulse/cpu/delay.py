"""Tensors as they were some positions ago: views on memory that stays."""

from __future__ import annotations

from tract_cpu.lower.copies import copy_step
from tract_cpu.lower.lowering import MOVES, Site

from tract_core.plugins.tables import Rows
from tract_pulse.cpu.position import tensor
from tract_pulse.cpu.window import window
from tract_pulse.ops.delay import Delay

ROWS = Rows()


@ROWS.row(MOVES, Delay)
def lower_delay(op: Delay, site: Site) -> str | None:
    """The pulse is copied behind what is kept; the result is a view."""
    if not op.kept:
        site.place(*site.known_inputs())
        return None
    why = site.lowering.why_not_kept(site.facts())
    if why is not None:
        return why
    x = tensor(site, site.node.inputs[0], op.axis)
    seen, pulse = window(site, op.axis, op.kept, x), x.view.shape[op.axis]
    brought = copy_step(x.view, seen.part(op.axis, op.kept, pulse), site.isa, ())
    x.place(site, seen.part(op.axis, 0, pulse + op.overlap), [brought])
    return None
