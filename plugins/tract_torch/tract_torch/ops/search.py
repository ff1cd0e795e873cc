"""Where elements belong among others that are in order."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.binary import Ge, Gt
from tract_core.ops.elementwise import Not
from tract_core.ops.gather import GatherElements
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.searchsorted")
def searchsorted(call: Call, wire: NodeWiring) -> OutletId:
    """How many elements of a row in order are below each value (or, from the right, not above it)"""
    row = call.input("sorted_sequence")
    if call.has("sorter"):
        row = wire.op(GatherElements(wire.rank(row) - 1), row, wire.i64(call.input("sorter")))
    right = call.flag("right") or call.value("side") == "right"
    return _counted(call, wire, row, "sorted_sequence", right=right)


@aten(ROWS, "aten.bucketize")
def bucketize(call: Call, wire: NodeWiring) -> OutletId:
    """Between which boundaries each value lies"""
    return _counted(call, wire, call.input("boundaries"), "boundaries", right=call.flag("right"))


def _counted(call: Call, wire: NodeWiring, row: OutletId, role: str, *, right: bool) -> OutletId:
    """NaN is behind everything, as nothing compares with it."""
    kind = call.common_kind(role, "self")
    values = call.operand("self", wire, kind)
    if wire.rank(row) > 1:
        row = wire.unsqueeze(row, [wire.rank(row) - 1])
    values = wire.unsqueeze(values, [wire.rank(values)])
    behind = wire.binary(Gt() if right else Ge(), wire.cast(row, kind), values)
    last = wire.rank(behind) - 1
    found = wire.op(Reduce((last,), Reducer.SUM), wire.cast(wire.op(Not(), behind), call.kind))
    return wire.squeeze(found, [last])
