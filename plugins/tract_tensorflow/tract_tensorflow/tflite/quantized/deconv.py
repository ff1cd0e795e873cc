"""TRANSPOSE_CONV of quantised images: data (batch, height, width, channels)."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.conv import KernelFormat
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.kernels import known_sizes
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.ops.deconv import transposed
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import scaled, stored
from tract_tensorflow.tflite.weights import factors_along
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.fixed_point import Rounding

ROWS = Rows()


@quantized_op(ROWS, "TRANSPOSE_CONV")
def transpose_conv(node: TfliteNode, wire: Wiring) -> Wired:
    """The sizes of the output, a kernel (outputs, height, width, inputs), the data and a bias"""
    x, kernel, bias = wire.tensor(2), wire.tensor(1), wire.optional_tensor(3)
    wide = DatumType.I64 if x.dtype is DatumType.I16 else DatumType.I32
    zeros = node.quantization(1).zeros
    data, weights = x.cast(wide) - node.quantization(2).zero, kernel.cast(wide)
    if zeros.any():
        weights = weights - node.quantization(1).zero
    op = transposed(wire, known_sizes(kernel, 4)[1:3], KernelFormat.OHWI)
    sums = data.op(op, weights, data.like(0).reshape(()) if bias is None else bias.cast(wide))
    rounding = Rounding.SHORT if wide is DatumType.I64 else Rounding.TWICE
    return stored(scaled(sums, factors_along(node, 0, 4, 3, (2, 1), in_f32=x.dtype is DatumType.U8), rounding), node)
