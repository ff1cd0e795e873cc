"""Convolutions of images and volumes: data (batch, height, width, channels), with the depth before the height."""

from __future__ import annotations

from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.dynamic_range import byte_weights, convolved
from tract_tensorflow.tflite.kernels import depthwise_kernel, grouped_kernel, known_sizes
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.spatial import pool_spec
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


@tflite_op(ROWS, "CONV_3D")
def conv_3d(node: TfliteNode, wire: Wiring) -> Wired:
    """A kernel (depth, height, width, channels, outputs), and a bias"""
    kernel = wire.tensor(1)
    op = Conv(pool_spec(node, known_sizes(kernel, 5)[:3], dilated=True), KernelFormat.HWIO)
    return _convolved(wire, op, kernel, 4)


def _convolved(wire: Wiring, op: Conv, kernel: Wired, channel: int) -> Wired:
    """Data in floats. ``channel``: the axis of the scales in the file, where the kernel is in bytes."""
    bias, in_bytes = wire.optional_tensor(2), byte_weights(wire, 1, kernel, channel)
    if in_bytes is not None and kernel.rank == 4:
        found = convolved(wire, op, in_bytes)
        return activated(found if bias is None else found + bias, wire.node)
    weights = float_weights(wire, 1, kernel, channel, op.kernel_format.o_axis(kernel.rank))
    start = weights.like(0).reshape(()) if bias is None else bias
    return activated(wire.tensor(0).op(op, weights, start), wire.node)
