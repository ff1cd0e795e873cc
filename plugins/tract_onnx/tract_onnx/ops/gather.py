"""Elements taken from places that a tensor names."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Gather")
def gather(node: OnnxNode, wire: Wiring) -> OutletId:
    """The slices of x at the positions on ``axis`` that the second input holds"""
    x = wire.input(0)
    return wire.op(Gather(node.axis("axis", wire.rank(x), 0)), x, wire.input(1))


@onnx_op(ROWS, "GatherElements", since=11)
def gather_elements(node: OnnxNode, wire: Wiring) -> OutletId:
    """One element of x for each position on ``axis`` in the second input"""
    x = wire.input(0)
    return wire.op(GatherElements(node.axis("axis", wire.rank(x), 0)), x, wire.input(1))


@onnx_op(ROWS, "GatherND", since=11)
def gather_nd(node: OnnxNode, wire: Wiring) -> OutletId:
    """The slices of x at the coordinates in the last axis of the second input"""
    return wire.op(GatherNd(node.integer("batch_dims", 0)), wire.input(0), wire.input(1))
