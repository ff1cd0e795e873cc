"""Tensors repeated."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_tile
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "TILE")
@tflite_op(ROWS, "TILE")
def tile(node: TfliteNode, wire: Wiring) -> OutletId:
    """Repeated along each axis, as often as an input says"""
    return wire.through(wire_tile, wire.input(0), wire.sizes(wire.input(1)))
