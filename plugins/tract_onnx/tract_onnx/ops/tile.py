"""Tensors repeated."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_tile
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Tile", since=6)
def tile(node: OnnxNode, wire: Wiring) -> OutletId:
    """X repeated along each axis, as often as the second input says"""
    return wire.through(wire_tile, wire.input(0), wire.sizes(wire.input(1)))
