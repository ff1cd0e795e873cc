"""Boxes without those that overlap."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, NonMaxSuppression)
def non_max_suppression(op: NonMaxSuppression, node: Spelling) -> str:
    """NonMaxSuppression"""
    boxes, scores, *bounds = node.inputs
    most = node.cast(bounds[0], DatumType.I64) if node.fact(2).datum_type is not DatumType.I64 else bounds[0]
    return node.add("NonMaxSuppression", boxes, scores, most, *bounds[1:], center_point_box=int(op.centred))
