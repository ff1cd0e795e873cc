"""Conversions between element types."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Cast")
def cast(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X in another element type"""
    return wire.cast(wire.input(0), node.element_type("DstT"))
