"""The sizes of a tensor, as a tensor."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Shape")
def shape(node: OnnxNode, wire: Wiring) -> OutletId:
    """The sizes of axes ``start`` to ``end``; bounds count from the end when negative, and stop at the ends"""
    sizes: tuple[Dim, ...] = tuple(wire.shape(wire.input(0)))
    end = node.integer("end") if node.has("end") else len(sizes)
    return wire.const(sizes[node.integer("start", 0) : end])


@onnx_op(ROWS, "Size")
def size(node: OnnxNode, wire: Wiring) -> OutletId:
    """The number of elements"""
    return wire.const(wire.shape(wire.input(0)).volume)
