"""Weights that the file holds as those that are not zero: they are read with all of their zeros."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "DENSIFY")
@tflite_op(ROWS, "DENSIFY")
def densify(node: TfliteNode, wire: Wiring) -> OutletId:
    """What is read"""
    return wire.input(0)
