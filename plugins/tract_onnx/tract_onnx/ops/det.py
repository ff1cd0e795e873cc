"""Determinants."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.det import Det
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Det", since=11)
def det(node: OnnxNode, wire: Wiring) -> OutletId:
    """The determinants of the matrices on the last two axes"""
    return wire.op(Det(), wire.input(0))
