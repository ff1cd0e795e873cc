"""What becomes of the elements up to each one."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.cumsum import CumProd, CumSum
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, CumProd)
def cumprod(op: CumProd, node: Spelling) -> str | None:
    """CumProd, which there is from version 26 on"""
    if node.opset < 26:
        return None
    axis = node.constant(op.axis, DatumType.I64)
    return node.add("CumProd", node.input(), axis, exclusive=int(op.exclusive), reverse=int(op.reverse))


@ROWS.row(ONNX_WRITE, CumSum)
def cumsum(op: CumSum, node: Spelling) -> str:
    """CumSum"""
    axis = node.constant(op.axis, DatumType.I64)
    return node.add("CumSum", node.input(), axis, exclusive=int(op.exclusive), reverse=int(op.reverse))
