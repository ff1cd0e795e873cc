"""One value wherever a stream holds no signal."""

from __future__ import annotations

from tract_cpu.draft.lowering import Site
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start
from tract_cpu.program.eventual import ENDLESS, Eventual
from tract_cpu.table import MOVES
from tract_llvm.language.types import INDEX

from tract_core.plugins.tables import Rows
from tract_pulse.cpu.lay import BEFORE_ALL, PlacedPulse
from tract_pulse.cpu.position import KeptPosition, advance
from tract_pulse.cpu.tensor import form_there, overwritten
from tract_pulse.ops.mask import PulseMask

ROWS = Rows()


@ROWS.row(GROUPS, PulseMask)
def group_pulse_mask(op: PulseMask, start: Start) -> CpuGroup:
    """Alone, in blocks of channels where the input is."""
    form = form_there(start, op.axis)
    return start.alone(form, list(start.read(form)))


@ROWS.row(MOVES, PulseMask)
def lower_pulse_mask(op: PulseMask, site: Site) -> str | None:
    """The value is written over what is outside of the signal, in place where nobody else sees that."""
    why = site.lowering.why_not_kept(site.facts())
    if why is not None:
        return why
    x, steps = overwritten(site, 0)
    value = site.lowering.constant(op.value.array)
    assert value is not None  # it has the type of the input
    (position,) = site.lowering.keep(site.node.node, KeptPosition(), [(INDEX, ())])
    pulse, value = PlacedPulse(x.view, op.axis, position), value.stretched(x.view.shape)
    steps += [pulse.laid(value, BEFORE_ALL, op.begin), pulse.laid(value, Eventual(op.end), ENDLESS)]
    x.place(site, steps)
    advance(site, position, x.view.shape[op.axis])
    return None
