"""Determinants."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.det import Det
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Det)
def det(op: Det, node: Spelling) -> str:
    """Det"""
    return node.add("Det", node.input())
