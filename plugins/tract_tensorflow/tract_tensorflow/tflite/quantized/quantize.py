"""Numbers into the steps of quantised tensors and back, and from steps into others."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.ops.elementwise import Round
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.rounding import limits
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import scaled, storage, stored
from tract_tensorflow.tflite.tables import BYTES, by_table, requantized
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "QUANTIZE")
def quantize(node: TfliteNode, wire: Wiring) -> Wired:
    """The nearest step of the output, halves away from zero, saturated; of integers, with a fixed point"""
    x, y, to = wire.tensor(0), node.output_quantization(), storage(node.output())
    if x.dtype.is_float():
        low, high = limits(to)
        steps = (x.cast(DatumType.F32) / float(y.scale)).op(Round())
        return steps.maximum(low - y.zero).minimum(high - y.zero).cast(DatumType.I32).__add__(y.zero).cast(to)
    source = node.quantization(0)
    if x.dtype in BYTES:
        return by_table(x, requantized(source, y), to)
    distances = x.cast(DatumType.I32) - source.zero
    return stored(scaled(distances, np.array(source.scale / y.scale)), node)


@quantized_op(ROWS, "DEQUANTIZE")
def dequantize(node: TfliteNode, wire: Wiring) -> Wired:
    """The numbers that integers stand for"""
    x, source, to = wire.tensor(0), node.quantization(0), node.output().kind
    if to is None or not to.is_float():
        raise CorruptModel(f"what is dequantised is of type {node.output().type_name}")
    zeros = source.zeros.astype(x.dtype.numpy)
    if source.scales.size == 1:
        op, scales, zeros = DequantizeLinear(to), source.scales.reshape(()), zeros.reshape(())
    elif not 0 <= source.axis < x.rank:
        raise CorruptModel(f"the scales lie along axis {source.axis} of {x.fact}")
    else:
        op, scales = DequantizeLinear(to, source.axis), source.scales
    return x.op(op, x.operand(scales), x.operand(zeros))
