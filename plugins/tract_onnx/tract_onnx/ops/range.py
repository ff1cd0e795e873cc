"""Numbers in sequence."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Range", since=11)
def number_range(node: OnnxNode, wire: Wiring) -> OutletId:
    """``start``, ``start + delta``, ... up to and without ``limit``"""
    start, limit, delta = (wire.number(wire.input(slot)) for slot in range(3))
    return wire.through(wire_range, start, limit, delta)
