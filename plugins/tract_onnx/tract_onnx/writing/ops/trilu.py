"""Halves of matrices."""

from __future__ import annotations

from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Trilu)
def trilu(op: Trilu, node: Spelling) -> str:
    """Trilu"""
    return node.add("Trilu", node.input(), node.as_i64(1), upper=int(op.upper))
