"""Triangles of matrices."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Trilu", since=14)
def trilu(node: OnnxNode, wire: Wiring) -> OutletId:
    """The part of each matrix above, or below, diagonal ``k``; 0 elsewhere"""
    k = wire.optional_input(1)
    diagonal = wire.const(0) if k is None else wire.number(k)
    return wire.op(Trilu(node.flag("upper", True)), wire.input(0), diagonal)
