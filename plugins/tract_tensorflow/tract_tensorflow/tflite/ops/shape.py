"""The sizes of a tensor, as a tensor."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "SHAPE")
@tflite_op(ROWS, "SHAPE")
def shape(node: TfliteNode, wire: Wiring) -> OutletId:
    """The sizes, in the type that is asked for"""
    sizes = wire.const(tuple(wire.shape(wire.input(0))))
    return wire.cast(sizes, node.element_type("out_type", DatumType.I32))


@quantized_op(ROWS, "RANK")
@tflite_op(ROWS, "RANK")
def rank(node: TfliteNode, wire: Wiring) -> OutletId:
    """The number of axes"""
    return wire.const(np.array(wire.rank(wire.input(0)), np.int32))
