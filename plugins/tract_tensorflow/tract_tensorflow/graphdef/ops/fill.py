"""Tensors of one value."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_expand, wire_fill
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Fill")
def fill(node: GraphNode, wire: GraphWiring) -> OutletId:
    """A tensor of the shape that the first input holds, filled with the second"""
    sizes, value = wire.sizes(wire.input(0)), wire.number(wire.input(1))
    known = wire.constant(value)
    if known is not None:
        return wire.through(wire_fill, sizes, Constant(known))
    return wire.through(wire_expand, value, sizes)


@tf_op(ROWS, "ZerosLike")
def zeros_like(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Zeros in the shape of x"""
    return _like(wire, 0)


@tf_op(ROWS, "OnesLike")
def ones_like(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Ones in the shape of x"""
    return _like(wire, 1)


def _like(wire: GraphWiring, value: int) -> OutletId:
    x = wire.input(0)
    return wire.broadcast(wire.const(np.array(value, wire.dtype(x).numpy)), wire.shape(x))


@tf_op(ROWS, "Empty")
def empty(node: GraphNode, wire: GraphWiring) -> OutletId:
    """A tensor of the shape that the input holds, of no particular values: zeros"""
    kind = node.element_type("dtype")
    return wire.through(wire_fill, wire.sizes(wire.input(0)), Constant(np.zeros((), kind.numpy)))
