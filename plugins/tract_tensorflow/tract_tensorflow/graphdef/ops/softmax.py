"""Softmax and its relatives."""

from __future__ import annotations

from typing import Final

from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

_OPS: Final = {"Softmax": Softmax, "LogSoftmax": LogSoftmax}


@tf_op(ROWS, *_OPS)
def softmax(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Over the last axis"""
    x = wire.input(0)
    if wire.rank(x) == 0:
        raise FactError(f"{node.op_type} wants at least one axis, found {wire.fact(x)}")
    return wire.op(_OPS[node.op_type]((wire.rank(x) - 1,)), x)
