"""Pictures of the blocks that cover them."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.col2im import Col2Im
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Col2Im)
def col2im(op: Col2Im, node: Spelling) -> str | None:
    """Col2Im, which there is from version 18 on"""
    if node.opset < 18:
        return None
    told = {"strides": list(op.strides), "dilations": list(op.dilations), "pads": [*op.before, *op.after]}
    return node.add("Col2Im", *node.inputs, **told)
