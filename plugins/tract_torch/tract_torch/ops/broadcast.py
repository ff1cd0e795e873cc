"""Tensors that are stretched or repeated."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.tile import Tile
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.expand", "aten.broadcast_to")
def expand(call: Call, wire: NodeWiring) -> OutletId:
    """Axes of size 1 stretched, and new ones in front, to the shape that PyTorch tells"""
    x, shape = call.input("self"), call.shape()
    return wire.broadcast(wire.unsqueeze(x, range(len(shape) - wire.rank(x))), shape)


@aten(ROWS, "aten.repeat")
def repeat(call: Call, wire: NodeWiring) -> OutletId:
    """So many times behind each other, along each axis"""
    x, counts = call.input("self"), call.dims("repeats")
    return wire.op(Tile(tuple(counts)), wire.unsqueeze(x, range(len(counts) - wire.rank(x))))
