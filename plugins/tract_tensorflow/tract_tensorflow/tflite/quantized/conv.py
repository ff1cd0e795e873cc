"""Convolutions of quantised images: data (batch, height, width, channels)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.ops.conv import Conv
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool_spec import Explicit
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.kernels import depthwise_kernel, grouped_kernel
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import stored_sums
from tract_tensorflow.tflite.weights import factors_along
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.fixed_point import Rounding

ROWS = Rows()

_DISTANCES: Final = 256
"""More than any byte lies from a zero point."""


@quantized_op(ROWS, "CONV_2D")
def conv_2d(node: TfliteNode, wire: Wiring) -> Wired:
    """A kernel (outputs, height, width, channels of a group), and a bias"""
    return _convolved(wire, *grouped_kernel(wire), 0)


@quantized_op(ROWS, "DEPTHWISE_CONV_2D")
def depthwise_conv_2d(node: TfliteNode, wire: Wiring) -> Wired:
    """A kernel (1, height, width, outputs): each channel of the data is a group of its own"""
    return _convolved(wire, *depthwise_kernel(wire), 3)


def _convolved(wire: Wiring, op: Conv, kernel: Wired, channel: int) -> Wired:
    """Exact sums of integers, in the steps of the output. ``channel``: the axis of the kernel's scales in the file."""
    sums, most = _integer_sums(wire, op, kernel)
    is_old = wire.tensor(0).dtype is DatumType.U8
    factors = factors_along(wire.node, channel, sums.rank, sums.rank - 1, in_f32=is_old)
    rounding = Rounding.SHORT if sums.dtype is DatumType.I64 else Rounding.TWICE
    return stored_sums(sums, factors, wire.node, rounding, most=most)


def _integer_sums(wire: Wiring, op: Conv, kernel: Wired) -> tuple[Wired, int | None]:
    """The sums of products of distances from zero points, and the bias: i32, or i64 with 16-bit data.

    With i32, also what they do not go beyond.
    """
    node, x, bias = wire.node, wire.tensor(0), wire.optional_tensor(2)
    zero = node.quantization(0).zero
    if bias is not None and bias.rank != 1:
        raise CorruptModel(f"the bias of a convolution is {bias.fact}, wanted one axis")
    if x.dtype is DatumType.I16:
        wide = x.cast(DatumType.I64), kernel.cast(DatumType.I64)
        start = bias.cast(DatumType.I64) if bias is not None else x.operand(np.zeros((), np.int64))
        return wide[0].op(op, wide[1], start), None
    weights = wire.constant(kernel.outlet)
    offset = 0 if bias is None else (wire.constant(bias.outlet))
    kernel_zero = _kernel_zero(node)
    if weights is None or offset is None:
        raise Unsupported("the kernel or the bias of a quantised convolution is computed, constants are wanted")
    centred = weights if not kernel_zero else weights.astype(np.int16) - kernel_zero
    summed = tuple(axis for axis in range(4) if axis != op.kernel_format.o_axis(4))
    start = _i32(offset - zero * centred.sum(summed, dtype=np.int64))
    plain, padded = _bordered(op, x, zero)
    reach = _DISTANCES * np.abs(centred.astype(np.int64)).sum(summed) + np.abs(np.asarray(offset, np.int64))
    most = int(reach.max(initial=0))
    return padded.op(plain, x.operand(_narrow(centred)), x.operand(start)), most


def _kernel_zero(node: TfliteNode) -> int:
    zeros = node.quantization(1).zeros
    return node.quantization(1).zero if zeros.any() else 0


def _i32(values: Array) -> Array:
    """In 32 bits, which hold them as far as the sums of TFLite do."""
    return values.astype(np.int64).astype(np.int32)


def _narrow(values: Array) -> Array:
    fits = not values.size or (int(values.min()) >= -128 and int(values.max()) <= 127)
    return values.astype(np.int8) if fits else values.astype(np.int16)


def _bordered(op: Conv, x: Wired, zero: int) -> tuple[Conv, Wired]:
    """The convolution without padding, and the data with zero points around."""
    plans = op.pool.plan(op, x.shape)
    ends = [(0, 0), *((plan.before, plan.after) for plan in plans), (0, 0)]
    if not zero or all(pair == (0, 0) for pair in ends):
        return op, x
    pad = Pad(tuple(ends), PadConstant(Constant(np.array(zero, x.dtype.storage.numpy))))
    none = (0,) * len(plans)
    return replace(op, pool=replace(op.pool, padding=Explicit(none, none))), x.op(pad)
