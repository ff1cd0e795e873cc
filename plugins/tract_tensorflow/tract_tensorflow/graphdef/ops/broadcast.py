"""Axes of size 1 stretched."""

from __future__ import annotations

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "BroadcastTo")
def broadcast_to(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X stretched to the shape that the second input holds"""
    return wire.through(wire_expand, wire.input(0), wire.sizes(wire.input(1)))


@tf_op(ROWS, "BroadcastArgs")
def broadcast_args(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The common shape of two shapes"""
    a, b = wire.sizes(wire.input(0)), wire.sizes(wire.input(1))
    kind = wire.dtype(wire.input(0))
    count = max(wire.count(x, "sizes of BroadcastArgs") for x in (a, b))
    first, second = (_of_length(wire, x, count) for x in (a, b))
    return first.eq(1).where(second, first).cast(kind).outlet


def _of_length(wire: GraphWiring, x: OutletId, count: int) -> Wired:
    """A list of sizes with ones before it."""
    missing = count - wire.count(x, "sizes of BroadcastArgs")
    ones = wire.const(np.ones(missing, np.int64))
    return Wired(wire, wire.op(TypedConcat(0), ones, x) if missing else x)
