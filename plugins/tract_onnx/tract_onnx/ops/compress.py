"""Slices that a mask selects."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_compress
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Compress", since=9)
def compress(node: OnnxNode, wire: Wiring) -> OutletId:
    """The slices along ``axis``, or the elements of x in one row, for which the mask is true"""
    x, mask = wire.input(0), wire.input(1)
    if not node.has("axis"):
        x = wire.reshape(x, (wire.shape(x).volume,))
    return wire.through(wire_compress, x, mask, node.axis("axis", wire.rank(x), 0))
