"""Sequences of different lengths, reversed."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Lt, Sub
from tract_core.ops.gather import GatherElements
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "ReverseSequence", since=10)
def reverse_sequence(node: OnnxNode, wire: Wiring) -> OutletId:
    """The first elements of each item, as many as its length says, the other way round; the rest stays in place"""
    x, lengths = wire.input(0), wire.i64(wire.input(1))
    rank, shape = wire.rank(x), wire.shape(x)
    time, batch = wire.axes([node.integer("time_axis", 0), node.integer("batch_axis", 1)], rank)
    if wire.rank(lengths) != 1:
        raise FactError(f"one length per item is wanted, found {wire.fact(lengths)}")
    wire.require_shape("list of lengths", lengths, (shape[batch],))
    places = wire.through(wire_range, wire.const(0), wire.const(shape[time]), wire.const(1))
    places = wire.unsqueeze(places, [axis for axis in range(rank) if axis != time])
    lengths = wire.unsqueeze(lengths, [axis for axis in range(rank) if axis != batch])
    last = wire.binary(Sub(), lengths, wire.const(1))
    mirrored = wire.op(Sub(), last, places)
    source = wire.select(wire.op(Lt(), places, lengths), mirrored, places)
    return wire.op(GatherElements(time), x, wire.broadcast(source, shape))
