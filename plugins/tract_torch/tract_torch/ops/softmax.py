"""Softmax and its logarithm."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten.softmax.int", "aten._softmax", "aten.log_softmax.int", "aten._log_softmax")
def softmax(call: Call, wire: NodeWiring) -> OutletId:
    """Along one axis"""
    x = wire.cast(call.input("self"), call.kind)
    if not wire.rank(x):
        return wire.squeeze(_op(call, wire, wire.unsqueeze(x, [0]), 0), [0])
    return _op(call, wire, x, call.axis("dim", wire.rank(x)))


def _op(call: Call, wire: NodeWiring, x: OutletId, axis: int) -> OutletId:
    return wire.op(LogSoftmax((axis,)) if "log_softmax" in call.name else Softmax((axis,)), x)
