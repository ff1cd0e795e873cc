"""Boxes without those that overlap."""

from __future__ import annotations

from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, NonMaxSuppression)
def non_max_suppression(op: NonMaxSuppression, node: Spelling) -> str:
    """NonMaxSuppression"""
    boxes, scores, _, *bounds = node.inputs
    return node.add("NonMaxSuppression", boxes, scores, node.as_i64(2), *bounds, center_point_box=int(op.centred))
