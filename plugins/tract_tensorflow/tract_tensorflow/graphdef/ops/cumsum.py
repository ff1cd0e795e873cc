"""Running sums and products."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.ops.cumsum import CumLogSumExp, CumProd, CumSum, Running
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

_OPS: Final[dict[str, type[Running]]] = {
    "Cumprod": CumProd,
    "Cumsum": CumSum,
    "CumulativeLogsumexp": CumLogSumExp,
}


@tf_op(ROWS, *_OPS)
def running(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Along one axis, the sum or product of the elements up to each one"""
    x = wire.input(0)
    (axis,) = wire.known_ints(wire.number(wire.input(1)), f"axis of {node.op_type}")
    kind = _OPS[node.op_type]
    return wire.op(kind(wire.axis(axis, wire.rank(x)), node.flag("exclusive"), node.flag("reverse")), x)
