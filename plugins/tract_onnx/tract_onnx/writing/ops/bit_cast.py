"""Bits taken for another type."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.bit_cast import BitCast
from tract_onnx.writing.elements import code_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, BitCast)
def bit_cast(op: BitCast, node: Spelling) -> str | None:
    """BitCast, which there is from version 26 on"""
    return node.add("BitCast", node.input(), to=code_of(op.to)) if node.opset >= 26 else None
