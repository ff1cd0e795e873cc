"""How ranges stream: they go on counting."""

from __future__ import annotations

import numpy as np

from tract_core.dims import symbols_of
from tract_core.model.graph import OutletId
from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_pulse.ops.range import PulseRange
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import LATE, Wire

ROWS = Rows()


@ROWS.row(PULSE, Range)
def pulse_range(op: Range, node: PulseNode) -> Wire | None:
    """One that is as long as the signal; where it ends does not matter."""
    if node.rate.symbol not in symbols_of(op.length):
        return None
    start, step = (_number(node, slot, what) for slot, what in ((0, "the start of the range"), (2, "its step")))
    return node.output(node.wire(PulseRange(node.rate.growth(op.length)), start, step), 0, 0)


def _number(node: PulseNode, slot: int, what: str) -> OutletId:
    """An input, as a constant where it looks as if it depended on the length of the signal."""
    outlet, fact = node.wires[slot].outlet, node.input_fact(slot)
    if outlet != LATE or fact.dims is None:
        return outlet
    value = np.array(node.number(fact.dims[0], what), fact.datum_type.numpy)
    return node.model.add_const(f"{node.name}.input-{slot}", value)
