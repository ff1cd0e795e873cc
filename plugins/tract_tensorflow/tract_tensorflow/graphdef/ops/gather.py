"""Elements taken from places that a tensor names."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather, GatherNd
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Gather", "ResourceGather")
def gather(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The slices of x at the places on the first axis that the second input holds"""
    return _gather(node, wire, node.integer("batch_dims", 0), None)


@tf_op(ROWS, "GatherV2")
def gather_along(node: GraphNode, wire: GraphWiring) -> OutletId:
    """As Gather, along the axis that the third input holds"""
    (axis,) = wire.known_ints(wire.number(wire.input(2)), "axis of GatherV2")
    return _gather(node, wire, node.integer("batch_dims", 0), axis)


def _gather(node: GraphNode, wire: GraphWiring, batch: int, axis: int | None) -> OutletId:
    x, places = wire.input(0), wire.input(1)
    rank, places_rank = wire.rank(x), wire.rank(places)
    batch = batch + places_rank if batch < 0 else batch
    axis = wire.axis(batch if axis is None else axis, rank)
    if not batch:
        return wire.op(Gather(axis), x, places)
    if not 0 < batch <= min(axis, places_rank):
        raise FactError(f"{batch} batch axes do not fit {wire.fact(x)} and places {wire.fact(places)}")
    # The axis is moved behind the batch, and what stood between them behind the places.
    moved = wire.transpose(x, (*range(batch), axis, *(one for one in range(batch, rank) if one != axis)))
    found = wire.op(GatherNd(batch), moved, wire.unsqueeze(places, [places_rank]))
    between = range(places_rank, places_rank + axis - batch)
    rest = range(places_rank + axis - batch, wire.rank(found))
    return wire.transpose(found, (*range(batch), *between, *range(batch, places_rank), *rest))


@tf_op(ROWS, "GatherNd", "ResourceGatherNd")
def gather_nd(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The slices of x at the coordinates in the last axis of the second input"""
    return wire.op(GatherNd(0), wire.input(0), wire.input(1))
