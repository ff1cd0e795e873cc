"""Conversions between element types."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.cast import Cast
from tract_core.plugins.tables import Rows
from tract_onnx.writing.elements import code_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()

_EIGHT_BITS = (DatumType.F8E4M3FN, DatumType.F8E4M3FNUZ, DatumType.F8E5M2, DatumType.F8E5M2FNUZ)


@ROWS.row(ONNX_WRITE, Cast)
def cast(op: Cast, node: Spelling) -> str:
    """Cast; sizes are i64 there already, and what is too large for narrow floats is infinite, or no number"""
    sizes = (DatumType.TDIM, DatumType.I64)
    if node.fact().datum_type in sizes and op.to in sizes:
        return node.input()
    if op.to in _EIGHT_BITS and node.opset >= 19:
        return node.add("Cast", node.input(), to=code_of(op.to), saturate=0)
    return node.cast(node.input(), op.to)
