"""Element types, and what leaves a tensor as it is."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(
    ROWS,
    "aten._to_copy",
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.device",
    "aten.type_as",
    "aten.clone",
    "aten.contiguous",
    "aten.detach",
    "aten.detach_",
    "aten.alias",
    "aten.lift_fresh_copy",
)
def same(call: Call, wire: NodeWiring) -> OutletId:
    """The same elements, in the type that is asked for"""
    return wire.cast(call.tensor("self"), call.kind)


@aten(ROWS, "aten.dropout", "aten.native_dropout")
def dropout(call: Call, wire: NodeWiring) -> OutletId:
    """Nothing, in evaluation mode"""
    return call.tensor("input")
