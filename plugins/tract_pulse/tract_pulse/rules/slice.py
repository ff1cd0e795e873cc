"""How slices stream: the positions before the slice are part of the delay, those behind it mean nothing."""

from __future__ import annotations

from tract_core.ops.downsample import Downsample
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.rate import is_whole
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import no_multiple
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()

_FROM_FRONT = "count from the beginning of the signal: what counts from its end is known too late"


@ROWS.row(PULSE, Slice)
def pulse_slice(op: Slice, node: PulseNode) -> Wire | None:
    """Nothing is computed: only which positions have a meaning changes."""
    stream = node.wires[0].stream
    if stream is None or stream.axis != op.axis:
        return None
    start = node.number(op.start, "the start of the slice", hint=_FROM_FRONT)
    return node.output(node.wires[0].outlet, op.axis, stream.delay + start)


@ROWS.row(PULSE, Downsample)
def pulse_downsample(op: Downsample, node: PulseNode) -> Wire | None:
    """Every n-th position of each pulse, beginning where the signal says."""
    stream = node.wires[0].stream
    if stream is None or stream.axis != op.axis:
        return None
    if op.stride < 0:
        raise CannotStream(
            "it turns the signal around: its first output is the last position of the signal",
            hint="leave the order as it is, or turn around windows of fixed length",
        )
    pulse = node.pulse(node.wires[0])
    if not is_whole(pulse, op.stride):
        raise no_multiple(pulse, op.stride)
    first = stream.delay + op.modulo
    thinned = node.wire(Downsample(op.axis, op.stride, first % op.stride), node.wires[0].outlet)
    return node.output(thinned, op.axis, first // op.stride)
