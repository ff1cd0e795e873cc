"""Elements chosen from two tensors, and the places where something holds."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_non_zero
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "SELECT")
@tflite_op(ROWS, "SELECT")
def select(node: TfliteNode, wire: Wiring) -> OutletId:
    """The second input where the first is true, else the third; a list of truths is for the first axis"""
    condition, if_true = wire.input(0), wire.input(1)
    if wire.rank(condition) == 1 and wire.rank(if_true) > 1:
        condition = wire.unsqueeze(condition, range(1, wire.rank(if_true)))
    return wire.select(condition, if_true, wire.input(2))


@quantized_op(ROWS, "SELECT_V2")
@tflite_op(ROWS, "SELECT_V2")
def select_v2(node: TfliteNode, wire: Wiring) -> OutletId:
    """The second input where the first is true, else the third; sizes of 1 and missing axes stretch"""
    return wire.select(wire.input(0), wire.input(1), wire.input(2))


@tflite_op(ROWS, "WHERE")
def where(node: TfliteNode, wire: Wiring) -> OutletId:
    """The coordinates of all elements that are true, or not zero, a row for each"""
    return wire.transpose(wire.through(wire_non_zero, wire.input(0)), (1, 0))
