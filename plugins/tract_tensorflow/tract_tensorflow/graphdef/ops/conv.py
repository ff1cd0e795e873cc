"""Convolutions."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import Final

import numpy as np

from tract_core.dims import is_symbolic
from tract_core.errors import FactError, LimitExceeded
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Max
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.extremes import lowest
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.patches import Patches
from tract_tensorflow.graphdef.ops.spatial import data_format, groups, kernel_sizes, window
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Conv2D", "Conv3D")
def conv(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Data (batch, places, channels) and a kernel (places, channels of a group, outputs)"""
    x, kernel = wire.input(0), wire.input(1)
    layout = data_format(node, "NHWC" if node.op_type == "Conv2D" else "NDHWC")
    pool = window(node, kernel_sizes(wire, kernel), layout)
    return _conv(wire, Conv(pool, KernelFormat.HWIO, groups(wire, x, kernel, layout)), x, kernel)


@tf_op(ROWS, "DepthwiseConv2dNative")
def depthwise_conv(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Data (batch, places, channels) and a kernel (places, channels, outputs of each channel)"""
    x, kernel = wire.input(0), wire.input(1)
    layout = data_format(node)
    if wire.rank(kernel) != 4 or wire.rank(x) != 4:
        raise FactError(f"data and a kernel of 4 axes are wanted, found {wire.fact(x)} and {wire.fact(kernel)}")
    *sizes, channels, multiplier = wire.shape(kernel)
    pool = window(node, kernel_sizes(wire, kernel), layout)
    if is_symbolic(channels):
        raise FactError(f"the channels of the kernel {wire.fact(kernel)} must be known when the model is loaded")
    kernel = wire.reshape(kernel, (*sizes, 1, channels * multiplier))
    return _conv(wire, Conv(pool, KernelFormat.HWIO, int(channels)), x, kernel)


def _conv(wire: GraphWiring, op: Conv, x: OutletId, kernel: OutletId) -> OutletId:
    bias = wire.const(np.zeros((), wire.dtype(x).numpy))
    return wire.op(op, x, kernel, bias)


_MOST: Final = 1024
"""Elements of a filter of Dilation2D, each of which becomes nodes of its own."""


@tf_op(ROWS, "Dilation2D")
def dilation(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The largest sum of a window and a filter, channel by channel"""
    x, kernel = wire.input(0), wire.input(1)
    if wire.rank(kernel) != 3 or wire.rank(x) != 4:
        raise FactError(f"an image and a filter of 3 axes are wanted, found {wire.fact(x)} and {wire.fact(kernel)}")
    if not wire.dtype(x).is_number() or wire.dtype(x).is_complex():
        raise FactError(f"Dilation2D wants real numbers, found {wire.fact(x)}")
    sizes = kernel_sizes(wire, wire.unsqueeze(kernel, [3]))
    if prod(sizes) > _MOST:
        raise LimitExceeded(f"a filter of {list(sizes)}; at most {_MOST} elements are allowed")
    patches = Patches.of(node, sizes, "rates")
    parts = patches.wire(wire, x, lowest(np.dtype(wire.dtype(x).numpy)))
    sums = [
        wire.binary(Add(), part, Wired(wire, kernel)[place[0], place[1]].outlet)
        for part, place in zip(parts, np.ndindex(*sizes), strict=True)
    ]
    return reduce(lambda a, b: wire.binary(Max(), a, b), sums)
