"""A choice, element by element."""

from __future__ import annotations

from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Iff)
def iff(op: Iff, node: Spelling) -> str:
    """Where, or And and Or"""
    condition, yes, no = node.inputs
    return node.where(condition, yes, no, node.result().datum_type)
