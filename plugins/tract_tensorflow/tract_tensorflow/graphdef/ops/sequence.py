"""Lists of tensors of one shape: here, one tensor with an axis for the elements of the list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, same_dim
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.range import Range
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.slice import Slice
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


@tf_op(ROWS, "TensorListGather")
def gather(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The elements at several places, as one tensor"""
    items, places = wire.input(0), wire.input(1)
    if _are_all(wire, places, _count(wire, items)):
        return items
    return wire.op(Gather(0), items, places)


@tf_op(ROWS, "TensorListScatterIntoExistingList")
def scatter(node: GraphNode, wire: GraphWiring) -> OutletId:
    """A list with the slices of a tensor at several places"""
    values, places, reserved = wire.input(1), wire.input(2), wire.reserved(0)
    if reserved is None:
        items = wire.input(0)
    else:
        length = wire.dims(wire.number(reserved[1]))
        if length is not None and _are_all(wire, wire.input(2), length[0]):
            return values
        items = zeros_for(wire, reserved[1], wire.op(Gather(0), values, wire.const(0)))
    return wire.op(ScatterNd(), items, wire.unsqueeze(wire.i64(places), [1]), values)


def _count(wire: GraphWiring, items: OutletId) -> Dim:
    """How many elements a list has. Raises FactError for what is no list."""
    if not wire.rank(items):
        raise FactError(f"{wire.fact(items)} is no list")
    return wire.shape(items)[0]


def _are_all(wire: GraphWiring, places: OutletId, length: Dim) -> bool:
    """Whether places are all those of a list, in order."""
    known = wire.constant(places)
    if known is not None:
        return known.size == length and np.array_equal(known.reshape(-1), np.arange(known.size))
    made = wire.model.nodes[places.node]
    if not isinstance(made.op, Range) or not same_dim(made.op.length, length):
        return False
    start, _, step = (wire.constant(x) for x in made.inputs)
    return start is not None and step is not None and start.item() == 0 and step.item() == 1


@tf_op(ROWS, "TensorListConcatV2")
def concat(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId]:
    """The elements one after the other along their first axis, and the size of it that each has"""
    items = wire.input(0)
    if wire.rank(items) < 2:
        raise FactError(f"a list of {wire.fact(items)} has elements without an axis to join")
    count, size, *rest = wire.shape(items)
    sizes = wire.broadcast(wire.unsqueeze(wire.const(size), [0]), (count,))
    return [wire.reshape(items, (count * size, *rest)), wire.i64(sizes)]


@tf_op(ROWS, "TensorListPushBack")
def push_back(node: GraphNode, wire: GraphWiring) -> OutletId:
    """A list with one element more at its end"""
    items, item = wire.reserved(0), wire.unsqueeze(wire.input(1), [0])
    if items is None:
        return wire.op(TypedConcat(0), wire.input(0), item)
    length = wire.constant(items[1])
    if length is not None and not length.any():
        return item
    return wire.op(TypedConcat(0), zeros_for(wire, items[1], wire.input(1)), item)


@tf_op(ROWS, "TensorListPopBack")
def pop_back(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId]:
    """A list without its last element, and that element"""
    items = wire.input(0)
    last = _count(wire, items) - 1
    return [wire.op(Slice(0, 0, last), items), wire.op(Gather(0), items, wire.const(last))]


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
    found = wire.const(_count(wire, wire.input(0))) if reserved is None else wire.number(reserved[1])
    return wire.cast(found, DatumType.I32)
