"""How padding streams: before the signal it takes the place of what was there, behind it the end has to be known."""

from __future__ import annotations

from tract_core.ops.pad import Pad, PadConstant, PadReflect, PadWrap
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_pulse.ops.pad import PulsePad
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.rules.windows import is_zero
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, Pad)
def pulse_pad(op: Pad, node: PulseNode) -> Wire | None:
    """Along the stream and along other axes, one after the other."""
    stream = node.wires[0].stream
    if stream is None or op.pads[stream.axis] == (0, 0):
        return None
    if isinstance(op.mode, PadWrap):
        raise CannotStream(
            "it repeats the end of the signal in front of its beginning",
            hint="pad with a constant, with the edge or with the reflection",
        )
    padded = _padded(op, node)
    others = tuple((0, 0) if axis == stream.axis else pair for axis, pair in enumerate(op.pads))
    if all(pair == (0, 0) for pair in others):
        return padded
    assert padded.stream is not None
    outlet = node.wire(Pad(others, op.mode), padded.outlet, suffix=".other_axes")
    return node.output(outlet, stream.axis, padded.stream.delay)


def _padded(op: Pad, node: PulseNode) -> Wire:
    """The stream with what stands before and behind the signal.

    What is put in front may lie ahead, by as much as a reflection is long; what is put behind, as far back. So the
    pulse is seen with that many positions before and behind it.
    """
    axis, pulse = node.stream(0).axis, node.pulse(node.wires[0])
    before, after = node.number(op.pads[axis][0], "the padding before the signal"), op.pads[axis][1]
    wire = node.with_known_end(node.wires[0]) if after != 0 else node.wires[0]
    stream = wire.stream
    assert stream is not None
    if isinstance(op.mode, PadConstant):
        missing, ahead, back = max(0, before - stream.delay), 0, 0
    else:
        reflects = isinstance(op.mode, PadReflect)
        missing, ahead = 0, before * (1 + reflects)
        back = 2 * node.number(after, "the reflection behind the signal") if reflects else 0
    wire = node.delayed(wire, missing, ahead + back)
    assert wire.stream is not None
    begin = wire.stream.delay
    untouched = isinstance(op.mode, PadConstant) and stream.delay == 0 and is_zero(op.mode.value)
    if after != 0 or not untouched:
        pad = PulsePad(axis, before, after, begin, stream.length + begin, op.mode, ahead + back)
        wire = Wire(node.kept(pad, wire.outlet, ".pad"), wire.stream)
    if ahead or back:
        return node.output(node.wire(Slice(axis, back, pulse + back), wire.outlet), axis, begin - back - before)
    return node.output(wire.outlet, axis, begin - before)
