"""What is looked at, and not changed."""

from __future__ import annotations

from tract_core.ops.check import CheckShape
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, CheckShape)
def check_shape(op: CheckShape, node: Spelling) -> str:
    """The input: whoever runs the file meets another shape behind it"""
    return node.input()
