"""Running products."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.operators.cumprod import CumProd, DynCumProd
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "CumProd", since=26)
def cumprod(node: OnnxNode, wire: Wiring) -> OutletId:
    """Along one axis, the product of the elements up to each one"""
    x = wire.input(0)
    exclusive, reverse = node.flag("exclusive"), node.flag("reverse")
    axis = wire.number(wire.input(1))
    known = wire.constant(axis)
    if known is None:
        return wire.op(DynCumProd(exclusive, reverse), x, axis)
    return wire.op(CumProd(wire.axis(int(known), wire.rank(x)), exclusive, reverse), x)
