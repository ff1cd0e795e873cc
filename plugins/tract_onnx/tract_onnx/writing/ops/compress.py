"""Slices picked by booleans."""

from __future__ import annotations

from tract_core.ops.compress import Compress
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Compress)
def compress(op: Compress, node: Spelling) -> str:
    """Compress"""
    return node.add("Compress", *node.inputs, axis=op.axis)
