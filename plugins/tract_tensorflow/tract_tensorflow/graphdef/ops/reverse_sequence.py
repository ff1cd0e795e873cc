"""Sequences of different lengths, reversed."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.reverse_sequence_wiring import wire_reverse_sequence
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "ReverseSequence")
def reverse_sequence(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The first elements of each item, as many as its length says, the other way round; the rest stays in place"""
    x = wire.input(0)
    time, batch = wire.axes([node.integer("seq_dim"), node.integer("batch_dim", 0)], wire.rank(x))
    return wire_reverse_sequence(wire, x, wire.i64(wire.input(1)), time=time, batch=batch)
