"""Different elements."""

from __future__ import annotations

from tract_core.ops.unique import Unique
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Unique)
def unique(op: Unique, node: Spelling) -> tuple[str, ...]:
    """Unique"""
    axis = {} if op.axis is None else {"axis": op.axis}
    return node.several("Unique", 4, node.input(), sorted=int(op.sorted), **axis)
