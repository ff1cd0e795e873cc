"""Regions of pictures, interpolated."""

from __future__ import annotations

from tract_core.ops.roi_align import MaxRoiPool, RoiAlign
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, RoiAlign)
def roi_align(op: RoiAlign, node: Spelling) -> str:
    """RoiAlign"""
    return node.add(
        "RoiAlign",
        node.input(0),
        node.input(1),
        node.as_i64(2),
        output_height=op.height,
        output_width=op.width,
        spatial_scale=op.scale,
        sampling_ratio=op.samples,
        mode="max" if op.largest else "avg",
        coordinate_transformation_mode="half_pixel" if op.half_pixel else "output_half_pixel",
    )


@ROWS.row(ONNX_WRITE, MaxRoiPool)
def max_roi_pool(op: MaxRoiPool, node: Spelling) -> str:
    """MaxRoiPool"""
    return node.add("MaxRoiPool", *node.inputs, pooled_shape=[op.height, op.width], spatial_scale=op.scale)
