"""Tensors before and behind the signal of a stream, written where they stand."""

from __future__ import annotations

from tract_cpu.draft.lowering import Site
from tract_cpu.program.eventual import Eventual
from tract_cpu.table import MOVES
from tract_llvm.language.types import INDEX

from tract_core.dims import Dim
from tract_core.plugins.tables import Rows
from tract_pulse.cpu.lay import PlacedPulse
from tract_pulse.cpu.position import KeptPosition, advance
from tract_pulse.cpu.tensor import overwritten
from tract_pulse.ops.concat import PulseConcat

ROWS = Rows()


@ROWS.row(MOVES, PulseConcat)
def lower_pulse_concat(op: PulseConcat, site: Site) -> str | None:
    """What is outside of the signal is written over what is there, in place where nobody else sees that."""
    why = site.lowering.why_not_kept(site.facts())
    if why is not None:
        return why
    inputs = site.known_inputs()
    x, steps = overwritten(site, op.stream)
    (position,) = site.lowering.keep(site.node.node, KeptPosition(), [(INDEX, ())])
    pulse = PlacedPulse(x.view, op.axis, position)
    sizes = [piece.shape[op.axis] for piece in inputs]
    at: Dim = op.begin
    for size in sizes[: op.stream]:
        at = at - size
    for slot, piece in enumerate(inputs):
        if slot == op.stream:
            at = op.end
            continue
        steps.append(pulse.laid(piece, Eventual(at), Eventual(at + sizes[slot])))
        at = at + sizes[slot]
    x.place(site, steps)
    advance(site, position, x.view.shape[op.axis])
    return None
