"""Convolutions."""

from __future__ import annotations

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.spatial import kernel_shape, pool_spec
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Conv")
def conv(node: OnnxNode, wire: Wiring) -> OutletId:
    """Data (batch, channels, places), a kernel (outputs, channels of a group, places), and a bias"""
    return wire_conv(node, wire)


def wire_conv(node: OnnxNode, wire: Wiring) -> OutletId:
    """The convolution of the first three inputs that the node's attributes describe."""
    x, kernel, bias = wire.input(0), wire.input(1), wire.optional_input(2)
    pool = pool_spec(node, kernel_shape(node, wire, kernel))
    if bias is None:
        bias = wire.const(np.zeros((), wire.dtype(x).numpy))
    return wire.op(Conv(pool, KernelFormat.OIHW, node.integer("group", 1)), x, kernel, bias)
