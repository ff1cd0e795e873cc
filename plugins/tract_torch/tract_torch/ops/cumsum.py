"""Running sums."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.cumsum import CumSum
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.cumsum")
def cumsum(call: Call, wire: NodeWiring) -> OutletId:
    """The sum of the elements so far, along one axis"""
    x = wire.cast(call.tensor("self"), call.kind)
    return wire.op(CumSum(wire.axis(int(call.value("dim")), wire.rank(x))), x) if wire.rank(x) else x
