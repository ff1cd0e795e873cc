"""The sizes of a tensor, as a tensor."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


def _sizes(node: GraphNode, wire: GraphWiring, x: OutletId) -> OutletId:
    return wire.cast(wire.const(tuple(wire.shape(x))), node.element_type("out_type", DatumType.I32))


@tf_op(ROWS, "Shape", "VariableShape")
def shape(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The sizes of all axes"""
    return _sizes(node, wire, wire.input(0))


@tf_op(ROWS, "ShapeN")
def shapes(node: GraphNode, wire: GraphWiring) -> list[OutletId]:
    """The sizes of all axes of each input"""
    return [_sizes(node, wire, x) for x in wire.all_inputs()]


@tf_op(ROWS, "Size")
def size(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The number of elements"""
    kind = node.element_type("out_type", DatumType.I32)
    return wire.cast(wire.const(wire.shape(wire.input(0)).volume), kind)


@tf_op(ROWS, "Rank")
def rank(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The number of axes"""
    return wire.cast(wire.const(wire.rank(wire.input(0))), DatumType.I32)
