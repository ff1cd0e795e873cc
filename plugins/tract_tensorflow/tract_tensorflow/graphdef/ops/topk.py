"""The largest elements of an axis."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.wired import Results
from tract_core.ops.wiring_dyn import wire_topk
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "TopKV2")
def topk(node: GraphNode, wire: GraphWiring) -> Results:
    """Along the last axis, as many as the second input says, and their places"""
    return _topk(node, wire, wire.number(wire.i64(wire.input(1))))


@tf_op(ROWS, "TopK")
def topk_of_attribute(node: GraphNode, wire: GraphWiring) -> Results:
    """As many as an attribute says"""
    return _topk(node, wire, wire.const(node.integer("k")))


def _topk(node: GraphNode, wire: GraphWiring, k: OutletId) -> Results:
    x = wire.input(0)
    if wire.rank(x) == 0:
        raise FactError(f"{node.op_type} wants at least one axis, found {wire.fact(x)}")
    values, places = wire.through(wire_topk, x, k, wire.rank(x) - 1, largest=True)
    return values, wire.cast(places, node.element_type("index_type", DatumType.I32))
