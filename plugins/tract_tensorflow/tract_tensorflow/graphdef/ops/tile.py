"""Tensors repeated."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_tile
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Tile")
def tile(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X repeated along each axis, as often as the second input says"""
    return wire.through(wire_tile, wire.input(0), wire.sizes(wire.input(1)))
