"""Numbers in sequence."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "RANGE")
def number_range(node: TfliteNode, wire: Wiring) -> OutletId:
    """A first number, and more in steps, up to and without a limit"""
    start, limit, step = (wire.number(wire.input(slot)) for slot in range(3))
    return wire.through(wire_range, start, limit, step)
