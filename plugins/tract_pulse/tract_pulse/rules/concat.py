"""How concatenations stream: what stands before the signal takes the place of what was there."""

from __future__ import annotations

from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_pulse.ops.concat import PulseConcat
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, TypedConcat)
def pulse_concat(op: TypedConcat, node: PulseNode) -> Wire | None:
    """Along the stream, one input is the stream, and the others are whole."""
    streams = [slot for slot, wire in enumerate(node.wires) if wire.stream is not None]
    if not any(node.stream(slot).axis == op.axis for slot in streams):
        return None
    if len(streams) > 1:
        raise CannotStream(
            f"inputs {streams} are streams, of which the second one begins where the first one ends",
            hint="put together along the axis of the stream what is whole, and at most one stream",
        )
    (slot,) = streams
    wire = node.wires[slot]
    if slot + 1 < len(node.wires):
        wire = node.with_known_end(wire)
    assert wire.stream is not None
    sizes = [node.input_fact(index).shape[op.axis] for index in range(slot)]
    before = sum(node.number(size, "the size of what stands before the signal") for size in sizes)
    wire = node.delayed(wire, max(0, before - wire.stream.delay))
    assert wire.stream is not None
    begin = wire.stream.delay
    laid = PulseConcat(op.axis, slot, begin, wire.stream.length + begin)
    outlets = [wire.outlet if index == slot else other.outlet for index, other in enumerate(node.wires)]
    return node.output(node.wire(laid, *outlets), op.axis, begin - before)
