"""How ranges stream: they go on counting."""

from __future__ import annotations

from tract_core.dims import symbols_of
from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_pulse.ops.range import PulseRange
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import Wire

ROWS = Rows()


@ROWS.row(PULSE, Range)
def pulse_range(op: Range, node: PulseNode) -> Wire | None:
    """One that is as long as the signal; where it ends does not matter."""
    if node.rate.symbol not in symbols_of(op.length):
        return None
    start, _, step = (wire.outlet for wire in node.wires)
    return node.output(node.wire(PulseRange(node.rate.growth(op.length)), start, step), 0, 0)
