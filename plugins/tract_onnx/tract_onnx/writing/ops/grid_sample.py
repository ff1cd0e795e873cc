"""Tensors read at any place."""

from __future__ import annotations

from tract_core.ops.grid_sample import GridSample
from tract_core.ops.interpolate import Interpolator
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, GridSample)
def grid_sample(op: GridSample, node: Spelling) -> str | None:
    """GridSample, of pictures, and of any number of axes from version 20 on, where modes have other names"""
    if node.opset < 20 and node.fact().rank != 4:
        return None
    old = {Interpolator.LINEAR: "bilinear", Interpolator.CUBIC: "bicubic"}
    mode = op.mode.value if node.opset >= 20 else old.get(op.mode, op.mode.value)
    told = {"mode": mode, "padding_mode": op.padding_mode.value, "align_corners": int(op.align_corners)}
    return node.add("GridSample", *node.inputs, **told)
