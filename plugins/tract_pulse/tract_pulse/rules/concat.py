"""How concatenations stream: what stands before the signal takes the place of what was there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Lt
from tract_core.ops.concat import TypedConcat
from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_pulse.ops.concat import PulseConcat
from tract_pulse.ops.range import PulseRange
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.pulsing.rate import eventual
from tract_pulse.registry import PULSE
from tract_pulse.stream import CannotStream, Wire

ROWS = Rows()


@ROWS.row(PULSE, TypedConcat)
def pulse_concat(op: TypedConcat, node: PulseNode) -> Wire | None:
    """Along the stream, the last stream goes on to the end; what is in front of it is whole, or of fixed length."""
    streams = [slot for slot, wire in enumerate(node.wires) if wire.stream is not None]
    if not any(node.stream(slot).axis == op.axis for slot in streams):
        return None
    last = streams[-1]
    if last + 1 < len(node.wires):
        node.wires[last] = node.with_known_end(node.wires[last])
    places = [0]
    for slot in range(last):
        places.append(places[-1] + _size(op, node, slot))
    if len(streams) == 1:
        wire = node.delayed(node.wires[last], max(0, places[last] - node.stream(last).delay))
        return _laid(op, node, wire, places[last])
    if streams != list(range(last + 1)):
        raise CannotStream(
            f"inputs {streams} are streams, with what is whole between them",
            hint="put what is whole in front of the streams, or behind them, in a concatenation of its own",
        )
    late = max(0, *(node.stream(slot).delay - place for slot, place in enumerate(places)))
    wires = [
        node.delayed(wire, late + place - node.stream(slot).delay, suffix=f".delay-{slot}")
        for slot, (wire, place) in enumerate(zip(node.wires, places, strict=False))
    ]
    if last + 1 < len(node.wires):
        return _laid(op, node, _chosen(op, node, wires, [late + place for place in places], ".streams"), places[last])
    return _chosen(op, node, wires, [late + place for place in places], "")


def _size(op: TypedConcat, node: PulseNode, slot: int) -> int:
    """How long an input in front of a stream is, if anything follows it. Raises CannotStream for one that grows."""
    sizes = [fact.shape[op.axis] for fact in map(node.input_fact, range(len(node.wires)))]
    following: Dim = 0
    for size in sizes[slot + 1 :]:
        following = following + size
    found = eventual(node.whole.symbols, node.rate, sizes[slot], following)
    if found is None:
        raise CannotStream(
            f"another input begins where input {slot} ends, after {sizes[slot]} positions: how many is known too late",
            hint="put together along the axis of the stream what is of fixed length, and then one stream",
        )
    return found


def _laid(op: TypedConcat, node: PulseNode, wire: Wire, place: int) -> Wire:
    """What is whole, in front of a stream and behind it. ``place``: where in the output the last stream begins."""
    assert wire.stream is not None
    slot = max(slot for slot, one in enumerate(node.wires) if one.stream is not None)
    begin = wire.stream.delay
    before = [one.outlet for one in node.wires[:slot] if one.stream is None]
    behind = [one.outlet for one in node.wires[slot + 1 :]]
    laid = PulseConcat(op.axis, len(before), begin, node.stream(slot).length + begin)
    return node.output(node.wire(laid, *before, wire.outlet, *behind), op.axis, begin - place)


def _chosen(op: TypedConcat, node: PulseNode, wires: Sequence[Wire], begins: Sequence[int], suffix: str) -> Wire:
    """Each of several streams up to the position, among those that come, at which the next one begins."""
    *others, found = wires
    assert found.stream is not None
    zero, one = (node.model.add_const(f"{node.name}.{name}", np.array(int(name == "one"))) for name in ("zero", "one"))
    counted = node.wire(PulseRange(node.pulse(found)), zero, one, suffix=".positions")
    rank, outlet = node.fact(found).rank, found.outlet
    for axis in range(rank):
        if axis != op.axis:
            counted = node.wire(AddAxis(axis), counted, suffix=f".axis-{axis}")
    for slot in reversed(range(len(others))):
        bound = node.model.add_const(f"{node.name}.end-{slot}", np.full((1,) * rank, begins[slot + 1]))
        inside = node.wire(Lt(), counted, bound, suffix=f".inside-{slot}")
        name = suffix if slot == 0 else f".chosen-{slot}"
        outlet = node.wire(Iff(), inside, others[slot].outlet, outlet, suffix=name)
    chosen = Wire(outlet, found.stream)
    return chosen if suffix else node.output(outlet, op.axis, begins[0])
