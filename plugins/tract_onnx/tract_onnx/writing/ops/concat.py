"""Tensors laid one after the other."""

from __future__ import annotations

from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, TypedConcat)
def concat(op: TypedConcat, node: Spelling) -> str:
    """Concat"""
    return node.add("Concat", *node.inputs, axis=op.axis)
