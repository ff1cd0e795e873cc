"""Tensors repeated."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.wiring_dyn import wire_move_axes, wire_tile
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Tile")
def tile_1(node: OnnxNode, wire: Wiring) -> OutletId:
    """X repeated along one axis: how often, and along which, are inputs"""
    x, times, axis = wire.input(0), wire.sizes(wire.input(1)), wire.sizes(wire.input(2))
    moved = wire.through(wire_move_axes, x, axis)
    counts = wire.op(TypedConcat(0), wire.const((1,) * (wire.rank(x) - 1)), times)
    return wire.through(wire_move_axes, wire.through(wire_tile, moved, counts), axis, back=True)


@onnx_op(ROWS, "Tile", since=6)
def tile_6(node: OnnxNode, wire: Wiring) -> OutletId:
    """X repeated along each axis, as often as the second input says"""
    return wire.through(wire_tile, wire.input(0), wire.sizes(wire.input(1)))
