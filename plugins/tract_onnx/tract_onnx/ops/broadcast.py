"""Axes of size 1 stretched."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Expand", since=8)
def expand(node: OnnxNode, wire: Wiring) -> OutletId:
    """X stretched to the common shape of itself and the one that the second input holds"""
    return wire.through(wire_expand, wire.input(0), wire.sizes(wire.input(1)))
