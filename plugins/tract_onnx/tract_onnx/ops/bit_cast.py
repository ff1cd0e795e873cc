"""The bits of elements, read as another element type."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.bit_cast import BitCast
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "BitCast", since=26)
def bit_cast(node: OnnxNode, wire: Wiring) -> OutletId:
    """The same bits as elements of another type"""
    return wire.op(BitCast(node.element_type("to")), wire.input(0))
