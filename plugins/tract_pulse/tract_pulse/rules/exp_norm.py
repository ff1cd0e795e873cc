"""How means that forget exponentially stream: from the first position of the signal on, from pulse to pulse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode, by_axes
from tract_pulse.registry import PULSE
from tract_pulse.stream import Wire

ROWS = Rows()


@ROWS.row(PULSE, "tract_nnef.nnef_only.exp_norm:ExpNorm")
def pulse_exp_norm(op: Any, node: PulseNode) -> Sequence[Wire] | Wire | None:
    """Along the signal, what comes before it is skipped; across it, each pulse starts from the mean that is given."""
    stream = node.wires[0].stream
    if all(wire.stream is None for wire in node.wires):
        return None
    if stream is None or stream.axis != op.axis:
        return by_axes(node, replace(op, stateless=True))
    node.wants_whole(1)
    op = replace(op, skip=op.skip + stream.delay, stateless=False)
    return node.output(node.wire(op, *(wire.outlet for wire in node.wires)), stream.axis, stream.delay)
