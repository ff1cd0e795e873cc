"""The places of what is not zero."""

from __future__ import annotations

from tract_core.ops.non_zero import NonZero
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, NonZero)
def non_zero(op: NonZero, node: Spelling) -> str:
    """NonZero"""
    return node.add("NonZero", node.input())
