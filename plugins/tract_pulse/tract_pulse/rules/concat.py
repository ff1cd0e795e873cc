"""How concatenations stream: what stands before the signal takes the place of what was there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Lt
from tract_core.ops.concat import TypedConcat
from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_pulse.ops.concat import PulseConcat
from tract_pulse.ops.range import PulseRange
from tract_pulse.pulsing.node import PulseNode
from tract_pulse.registry import PULSE
from tract_pulse.stream import CannotStream, Stream, Wire

ROWS = Rows()


@ROWS.row(PULSE, TypedConcat)
def pulse_concat(op: TypedConcat, node: PulseNode) -> Wire | None:
    """Along the stream: streams one after the other, with what is whole in front of them and behind them."""
    streams = [slot for slot, wire in enumerate(node.wires) if wire.stream is not None]
    if not all(node.stream(slot).axis == op.axis for slot in streams) or not streams:
        return None
    first, last = streams[0], streams[-1]
    if streams != list(range(first, last + 1)):
        raise CannotStream(
            f"inputs {streams} are streams, with what is whole between them",
            hint="put what is whole in front of the streams, or behind them, in a concatenation of its own",
        )
    if len(streams) == len(node.wires):
        return _joined(op, node, streams, "")
    wire = node.wires[first] if first == last else _joined(op, node, streams, ".streams")
    if last + 1 < len(node.wires):
        wire = node.with_known_end(wire)
    assert wire.stream is not None
    sizes = [node.input_fact(slot).shape[op.axis] for slot in range(first)]
    before = sum(node.number(size, "the size of what stands before the signal") for size in sizes)
    wire = node.delayed(wire, max(0, before - wire.stream.delay))
    assert wire.stream is not None
    begin = wire.stream.delay
    laid = PulseConcat(op.axis, first, begin, wire.stream.length + begin)
    outlets = [one.outlet for one in (*node.wires[:first], wire, *node.wires[last + 1 :])]
    return node.output(node.wire(laid, *outlets), op.axis, begin - before)


def _joined(op: TypedConcat, node: PulseNode, slots: Sequence[int], suffix: str) -> Wire:
    """Streams one after the other: each up to the position, among those that come, at which the next one begins."""
    sizes = [node.stream(slot).length for slot in slots]
    places = [0]
    for place in range(len(slots) - 1):
        places.append(places[-1] + _size(node, slots[place], sizes[place:]))
    late = max(0, *(node.stream(slot).delay - place for slot, place in zip(slots, places, strict=True)))
    *others, last = (
        node.delayed(node.wires[slot], late + place - node.stream(slot).delay, suffix=f".delay-{slot}")
        for slot, place in zip(slots, places, strict=True)
    )
    outlet, rank = last.outlet, node.fact(last).rank
    counted = _positions(op, node, last)
    for place in reversed(range(len(others))):
        bound = node.model.add_const(f"{node.name}.end-{place}", np.full((1,) * rank, late + places[place + 1]))
        inside = node.wire(Lt(), counted, bound, suffix=f".inside-{place}")
        name = suffix if place == 0 else f".chosen-{place}"
        outlet = node.wire(Iff(), inside, others[place].outlet, outlet, suffix=name)
    return Wire(outlet, Stream(op.axis, late, node.whole.known.simplify(sum(sizes))))


def _size(node: PulseNode, slot: int, sizes: Sequence[Dim]) -> int:
    """How long a stream is, the first of ``sizes``, if anything of the others follows it.

    Raises CannotStream for one that grows.
    """
    following: Dim = 0
    for size in sizes[1:]:
        following = following + size
    found = node.rate.lengths.number(sizes[0], following)
    if found is None:
        raise CannotStream(
            f"another input begins where input {slot} ends, after {sizes[0]} positions: how many is known too late",
            hint="put together along the axis of the stream what is of fixed length, and then one stream",
        )
    return found


def _positions(op: TypedConcat, node: PulseNode, wire: Wire) -> OutletId:
    """The numbers of the positions that come, of size 1 along all axes but that of the stream."""
    zero, one = (node.model.add_const(f"{node.name}.{name}", np.array(int(name == "one"))) for name in ("zero", "one"))
    counted = node.wire(PulseRange(node.pulse(wire)), zero, one, suffix=".positions")
    for axis in range(node.fact(wire).rank):
        if axis != op.axis:
            counted = node.wire(AddAxis(axis), counted, suffix=f".axis-{axis}")
    return counted
