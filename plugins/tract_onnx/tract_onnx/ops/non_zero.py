"""Where elements are not zero."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_non_zero
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "NonZero", since=9)
def non_zero(node: OnnxNode, wire: Wiring) -> OutletId:
    """The coordinates of all elements that are not zero, one column each"""
    return wire.through(wire_non_zero, wire.input(0))
