"""The places of the elements that are not zero."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_non_zero
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Where")
def where(node: GraphNode, wire: GraphWiring) -> OutletId:
    """One row of coordinates for each element that is true, or not zero"""
    return wire.transpose(wire.through(wire_non_zero, wire.input(0)), (1, 0))
