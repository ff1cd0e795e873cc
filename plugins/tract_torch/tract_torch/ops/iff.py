"""Elements picked by a condition."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def where(call: Call, wire: NodeWiring) -> OutletId:
    """The second operand where the first one holds, else the third"""
    condition = wire.cast(call.input("condition"), DatumType.BOOL)
    return wire.select(condition, call.operand("self", wire, call.kind), call.operand("other", wire, call.kind))


@aten(ROWS, "aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(call: Call, wire: NodeWiring) -> OutletId:
    """A number where the mask holds, else the element"""
    return wire.select(call.input("mask"), call.operand("value", wire, call.kind), call.input("self"))
