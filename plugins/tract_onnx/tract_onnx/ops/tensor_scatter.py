"""Caches of keys and values, brought up to date."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.model.conditions import may_be_at_most
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, FloorRem
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "TensorScatter", since=24)
def tensor_scatter(node: OnnxNode, wire: Wiring) -> OutletId:
    """A cache, into which each item's new elements are written from its own place on"""
    cache, update = wire.input(0), wire.input(1)
    rank = wire.rank(cache)
    axis = node.axis("axis", rank, -2)
    shape, size = wire.shape(update), wire.shape(cache)[axis]
    if axis == 0 or len(shape) != rank:
        raise FactError(f"axis {axis} of {wire.fact(cache)} and {wire.fact(update)}, wanted one after the batch")
    if not may_be_at_most(shape[axis], size):
        raise FactError(f"the update {wire.fact(update)} is longer than axis {axis} of the cache {wire.fact(cache)}")
    wire.require_shape(
        "update",
        update,
        [one if at == axis else own for at, (one, own) in enumerate(zip(shape, wire.shape(cache), strict=True))],
    )
    places = wire.through(wire_range, wire.const(0), wire.const(shape[axis]), wire.const(1))
    places = wire.unsqueeze(places, [other for other in range(rank) if other != axis])
    starts = wire.optional_input(2)
    if starts is not None:
        wire.require_shape("list of places", starts, wire.shape(cache)[:1])
        places = wire.op(Add(), places, wire.unsqueeze(wire.i64(starts), range(1, rank)))
    if node.choice("mode", ("linear", "circular"), "linear") == "circular":
        places = wire.binary(FloorRem(), places, wire.const(size))
    return wire.op(ScatterElements(axis), cache, wire.broadcast(places, shape), update)
