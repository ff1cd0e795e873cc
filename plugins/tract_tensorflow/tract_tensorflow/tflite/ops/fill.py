"""Tensors of one value."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "FILL")
@tflite_op(ROWS, "FILL")
def fill(node: TfliteNode, wire: Wiring) -> OutletId:
    """A tensor of a shape, which the first input holds, of the element of the second"""
    return wire.through(wire_expand, wire.number(wire.input(1)), wire.sizes(wire.input(0)))


@tflite_op(ROWS, "ZEROS_LIKE")
def zeros_like(node: TfliteNode, wire: Wiring) -> Wired:
    """Zeros in the shape of the input"""
    x = wire.tensor(0)
    return x.like(0).broadcast(x.shape)
