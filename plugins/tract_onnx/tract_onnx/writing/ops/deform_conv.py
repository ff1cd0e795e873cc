"""Convolutions that read off their places."""

from __future__ import annotations

from tract_core.ops.deform_conv import DeformConv
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, DeformConv)
def deform_conv(op: DeformConv, node: Spelling) -> str | None:
    """DeformConv, which there is from version 19 on"""
    if node.opset < 19:
        return None
    return node.add(
        "DeformConv",
        *node.inputs,
        strides=list(op.strides),
        dilations=list(op.dilations),
        pads=[*op.before, *op.after],
        group=op.group,
        offset_group=op.offset_group,
    )
