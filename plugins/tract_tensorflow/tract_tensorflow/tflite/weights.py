"""Weights in bytes: the numbers that they stand for, and the factors that sums with them are multiplied by."""

from __future__ import annotations

import numpy as np

from tract_core.errors import CorruptModel
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.wiring import Wiring


def float_weights(wire: Wiring, slot: int, weights: Wired, axis: int, to: int) -> Wired:
    """Weights beside data in floats; bytes are dequantised. ``axis``: of their scales in the file; ``to``: of these."""
    if weights.dtype.is_float():
        return weights.cast(wire.dtype(wire.input(0)))
    quantization, kind = wire.node.quantization(slot), wire.dtype(wire.input(0)).storage
    scales, zeros = quantization.scales, quantization.zeros.astype(weights.dtype.numpy)
    if scales.size == 1:
        scales, zeros = scales.reshape(()), zeros.reshape(())
    elif quantization.axis != axis:
        raise CorruptModel(f"the scales of weights lie along axis {quantization.axis}, wanted {axis}")
    return weights.op(DequantizeLinear(kind, to), weights.operand(scales), weights.operand(zeros))


def factors_along(
    node: TfliteNode, axis: int, rank: int, to: int, slots: tuple[int, int] = (0, 1), *, in_f32: bool = False
) -> Array:
    """Steps of data times steps of weights in steps of the output, in f64: one, or one for each place of an axis.

    ``axis``: that of the weights' scales; the result has ``rank`` axes, and varies along ``to``. ``slots``: where data
    and weights are. ``in_f32``: whether the product of the first two is rounded to f32.
    """
    data, weights, output = node.quantization(slots[0]), node.quantization(slots[1]), node.output_quantization()
    if weights.scales.size > 1 and weights.axis != axis:
        raise CorruptModel(f"the scales of weights lie along axis {weights.axis}, wanted {axis}")
    products = data.scale * weights.scales.astype(np.float64)
    factors = (products.astype(np.float32).astype(np.float64) if in_f32 else products) / output.scale
    return factors.reshape([-1 if place == to else 1 for place in range(rank)])
