"""The different elements of a tensor."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.ops.unique import Unique
from tract_core.ops.wired import Results
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Unique", "UniqueWithCounts")
def unique(node: GraphNode, wire: GraphWiring) -> Results:
    """The elements in the order of their first occurrence, which of them each one is, and how often each occurs"""
    x = wire.input(0)
    if wire.rank(x) != 1:
        raise FactError(f"{node.op_type} wants a list, found {wire.fact(x)}")
    kind = node.element_type("out_idx", DatumType.I32)
    values, _, which, counts = wire.ops(Unique(None, False, wire.symbol("unique"), joins_nans=False), x)
    return values, wire.cast(which, kind), wire.cast(counts, kind)
