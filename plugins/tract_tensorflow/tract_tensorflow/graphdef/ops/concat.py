"""Tensors put together."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "ConcatV2")
def concat(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The inputs, one after the other along the axis that the last one holds"""
    *inputs, axis = wire.all_inputs()
    return _concat(wire, inputs, axis)


@tf_op(ROWS, "Concat")
def concat_of_first(node: GraphNode, wire: GraphWiring) -> OutletId:
    """As ConcatV2, the axis coming first"""
    axis, *inputs = wire.all_inputs()
    return _concat(wire, inputs, axis)


def _concat(wire: GraphWiring, inputs: Sequence[OutletId], axis: OutletId) -> OutletId:
    if not inputs:
        raise CorruptModel("there is nothing to put together")
    (place,) = wire.known_ints(wire.number(axis), "axis of Concat")
    place = wire.axis(place, wire.rank(inputs[0]))
    return inputs[0] if len(inputs) == 1 else wire.op(TypedConcat(place), *inputs)


@tf_op(ROWS, "Pack")
def pack(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The inputs, beside each other along a new axis"""
    inputs = wire.all_inputs()
    axis = node.axis("axis", wire.rank(inputs[0]) + 1, 0)
    longer = [wire.unsqueeze(x, [axis]) for x in inputs]
    return longer[0] if len(longer) == 1 else wire.op(TypedConcat(axis), *longer)
