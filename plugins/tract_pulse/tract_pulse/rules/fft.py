"""How Fourier transforms stream: those of frames, as windows that slide along the signal do."""

from __future__ import annotations

from tract_core.ops.fft import Stft
from tract_core.ops.pool_spec import Window
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import framed
from tract_pulse.stream import Wire

ROWS = Rows()


@ROWS.row(PULSE, Stft)
def pulse_stft(op: Stft, node: PulseNode) -> Wire | None:
    """A frame comes when its last position has come."""
    stream = node.wires[0].stream
    if stream is None or stream.axis != op.axis:
        return None
    window = Window(op.frame, 1, op.stride)
    wire, delay = framed(node, node.wires[0], window, (0, 0), fill=None)
    return node.output(node.wire(op, wire.outlet), op.axis, delay)
