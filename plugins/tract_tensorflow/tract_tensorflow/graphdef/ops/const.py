"""Constants and inputs written as nodes, where they are in no graph that reads them itself."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Const")
def constant(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The value among the attributes"""
    return wire.const(node.array("value"))
