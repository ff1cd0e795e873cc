"""Elements at positions that are computed."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather, GatherElements
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.embedding")
def embedding(call: Call, wire: NodeWiring) -> OutletId:
    """Rows of a table"""
    return wire.op(Gather(0), call.tensor("weight"), wire.cast(call.tensor("indices"), DatumType.I64))


@aten(ROWS, "aten.index_select")
def index_select(call: Call, wire: NodeWiring) -> OutletId:
    """Positions of an axis"""
    x = call.tensor("self")
    axis = wire.axis(int(call.value("dim")), wire.rank(x))
    return wire.op(Gather(axis), x, wire.cast(call.tensor("index"), DatumType.I64))


@aten(ROWS, "aten.gather")
def gather(call: Call, wire: NodeWiring) -> OutletId:
    """For each element of the index, the element at that position of an axis"""
    x = call.tensor("self")
    axis = wire.axis(int(call.value("dim")), wire.rank(x))
    return wire.op(GatherElements(axis), x, wire.cast(call.tensor("index"), DatumType.I64))
