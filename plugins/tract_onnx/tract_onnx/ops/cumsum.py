"""Running sums and products."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.cumsum import CumProd, CumSum, Running
from tract_core.ops.wiring_dyn import wire_move_axes
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "CumSum", since=11)
def cumsum(node: OnnxNode, wire: Wiring) -> OutletId:
    """Along one axis, the sum of the elements up to each one"""
    return _running(CumSum, node, wire)


@onnx_op(ROWS, "CumProd", since=26)
def cumprod(node: OnnxNode, wire: Wiring) -> OutletId:
    """Along one axis, the product of the elements up to each one"""
    return _running(CumProd, node, wire)


def _running(kind: type[Running], node: OnnxNode, wire: Wiring) -> OutletId:
    x = wire.input(0)
    exclusive, reverse = node.flag("exclusive"), node.flag("reverse")
    axis = wire.number(wire.input(1))
    known = wire.ints(axis, f"axis of {node.op_type}")
    if known is not None:
        return wire.op(kind(wire.axis(known[0], wire.rank(x)), exclusive, reverse), x)
    axes = wire.unsqueeze(axis, [0])
    moved = wire.through(wire_move_axes, x, axes)
    joined = wire.op(kind(wire.rank(x) - 1, exclusive, reverse), moved)
    return wire.through(wire_move_axes, joined, axes, back=True, sizes=wire.shape(x))
