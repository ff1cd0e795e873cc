"""Axes the other way round."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.reverse_sequence_wiring import wire_reverse_sequence
from tract_core.ops.slice import wire_slice
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "REVERSE_V2")
@tflite_op(ROWS, "REVERSE_V2")
def reverse(node: TfliteNode, wire: Wiring) -> OutletId:
    """The axes that an input names"""
    x = wire.input(0)
    for axis in wire.axes(wire.known_ints(wire.input(1), "the axes of REVERSE_V2"), wire.rank(x)):
        x = wire.through(wire_slice, x, axis, start=None, end=None, step=-1)
    return x


@quantized_op(ROWS, "REVERSE_SEQUENCE")
@tflite_op(ROWS, "REVERSE_SEQUENCE")
def reverse_sequence(node: TfliteNode, wire: Wiring) -> OutletId:
    """The first elements of each item, as many as its length says; the rest stays in place"""
    x, lengths = wire.input(0), wire.i64(wire.input(1))
    time, batch = wire.axes([node.integer("seq_dim", 0), node.integer("batch_dim", 0)], wire.rank(x))
    return wire_reverse_sequence(wire, x, lengths, time=time, batch=batch)
