"""Lists of tensors of one shape: here, one tensor with an axis for the elements of the list."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.wiring_dyn import wire_fill
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "TensorListFromTensor", "TensorListStack")
def as_it_is(node: GraphNode, wire: GraphWiring) -> OutletId:
    """A list of the slices of a tensor, or the tensor of which they are slices"""
    return wire.input(0)


@tf_op(ROWS, "TensorListGetItem")
def get_item(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The element at a place"""
    return wire.op(Gather(0), wire.input(0), wire.number(wire.input(1)))


@tf_op(ROWS, "TensorListSetItem")
def set_item(node: GraphNode, wire: GraphWiring) -> OutletId:
    """A list with another element at a place"""
    place, item = wire.number(wire.i64(wire.input(1))), wire.input(2)
    reserved = wire.reserved(0)
    items = wire.input(0) if reserved is None else zeros_for(wire, reserved[1], item)
    return wire.op(ScatterNd(), items, wire.unsqueeze(place, [0, 1]), wire.unsqueeze(item, [0]))


def zeros_for(wire: GraphWiring, length: OutletId, item: OutletId) -> OutletId:
    """A list of zeros for elements like ``item``."""
    sizes = wire.op(
        TypedConcat(0), wire.unsqueeze(wire.i64(wire.number(length)), [0]), wire.const(tuple(wire.shape(item)))
    )
    return wire.through(wire_fill, sizes, Constant(np.zeros((), wire.dtype(item).numpy)))


@tf_op(ROWS, "TensorListLength")
def length(node: GraphNode, wire: GraphWiring) -> OutletId:
    """How many elements there are"""
    reserved = wire.reserved(0)
    found = wire.const(wire.shape(wire.input(0))[0]) if reserved is None else wire.number(reserved[1])
    return wire.cast(found, DatumType.I32)
