"""Convolutions of images: data (batch, height, width, channels)."""

from __future__ import annotations

from tract_core.ops.conv import Conv
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.kernels import depthwise_kernel, grouped_kernel
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.weights import float_weights
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "CONV_2D")
def conv_2d(node: TfliteNode, wire: Wiring) -> Wired:
    """A kernel (outputs, height, width, channels of a group), and a bias"""
    return _convolved(wire, *grouped_kernel(wire), 0)


@tflite_op(ROWS, "DEPTHWISE_CONV_2D")
def depthwise_conv_2d(node: TfliteNode, wire: Wiring) -> Wired:
    """A kernel (1, height, width, outputs): each channel of the data is a group of its own"""
    return _convolved(wire, *depthwise_kernel(wire), 3)


def _convolved(wire: Wiring, op: Conv, kernel: Wired, channel: int) -> Wired:
    """Data in floats. ``channel``: the axis of the scales in the file, where the kernel is in bytes."""
    weights = float_weights(wire, 1, kernel, channel, op.kernel_format.o_axis(4))
    bias = wire.optional_tensor(2)
    start = weights.like(0).reshape(()) if bias is None else bias
    return activated(wire.tensor(0).op(op, weights, start), wire.node)
