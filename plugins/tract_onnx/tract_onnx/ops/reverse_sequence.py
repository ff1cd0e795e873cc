"""Sequences of different lengths, reversed."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.reverse_sequence_wiring import wire_reverse_sequence
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "ReverseSequence", since=10)
def reverse_sequence(node: OnnxNode, wire: Wiring) -> OutletId:
    """The first elements of each item, as many as its length says, the other way round; the rest stays in place"""
    x = wire.input(0)
    time, batch = wire.axes([node.integer("time_axis", 0), node.integer("batch_axis", 1)], wire.rank(x))
    return wire_reverse_sequence(wire, x, wire.i64(wire.input(1)), time=time, batch=batch)
