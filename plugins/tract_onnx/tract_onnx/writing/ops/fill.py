"""Tensors of one number."""

from __future__ import annotations

from tract_core.ops.fill import DynFill
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, DynFill)
def fill(op: DynFill, node: Spelling) -> str:
    """Expand of a constant, which takes elements of any type"""
    return node.add("Expand", node.held(op.value), node.add("Cast", node.input(), to=7))
