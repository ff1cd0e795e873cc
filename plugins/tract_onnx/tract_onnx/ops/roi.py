"""Regions of images, each brought to one size."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.roi_align import MaxRoiPool, RoiAlign
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "RoiAlign", since=10)
def roi_align_10(node: OnnxNode, wire: Wiring) -> OutletId:
    """Regions begin where their coordinates say"""
    return _roi_align(node, wire, half_pixel=False)


@onnx_op(ROWS, "RoiAlign", since=16)
def roi_align_16(node: OnnxNode, wire: Wiring) -> OutletId:
    """An attribute says whether regions are moved by half a pixel"""
    mode = node.choice("coordinate_transformation_mode", ("half_pixel", "output_half_pixel"), "half_pixel")
    return _roi_align(node, wire, half_pixel=mode == "half_pixel")


def _roi_align(node: OnnxNode, wire: Wiring, *, half_pixel: bool) -> OutletId:
    op = RoiAlign(
        height=node.integer("output_height", 1),
        width=node.integer("output_width", 1),
        scale=node.number("spatial_scale", 1.0),
        samples=node.integer("sampling_ratio", 0),
        largest=node.choice("mode", ("avg", "max"), "avg") == "max",
        half_pixel=half_pixel,
    )
    return wire.op(op, wire.input(0), wire.input(1), wire.input(2))


@onnx_op(ROWS, "MaxRoiPool")
def max_roi_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The largest pixels of the cells of each region"""
    height, width = node.each("pooled_shape", 2)
    return wire.op(MaxRoiPool(height, width, node.number("spatial_scale", 1.0)), wire.input(0), wire.input(1))
