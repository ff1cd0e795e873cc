"""Branches."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.model.graph import OutletId
from tract_core.ops.if_then_else_wiring import Body, wire_branches
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.body import argument_of, outlets_read, read_body
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import Wiring

ROWS = Rows()


@tf_op(ROWS, "If", "StatelessIf")
def if_then_else(node: GraphNode, wire: Wiring) -> Sequence[OutletId]:
    """One of two functions; the right one takes the node's place when the condition is known"""

    def read(name: str, own_scope: bool) -> Body:
        slots = range(1, len(wire.slots))
        given = [argument_of(wire, slot) for slot in slots]
        return read_body(node, wire, node.function(name), given, own_scope=own_scope), outlets_read(wire, slots)

    condition = truth_of(wire, wire.input(0))
    return wire_branches(wire.model, wire.label("if"), condition, ("then_branch", "else_branch"), read)


def truth_of(wire: Wiring, x: OutletId) -> OutletId:
    """Whether a condition holds: a number that is not 0 does, and so does a list that is not empty."""
    fact = wire.fact(x)
    if fact.rank and not is_symbolic(fact.shape.volume) and fact.shape.volume != 1:
        return wire.cast(wire.const(fact.shape.volume), DatumType.BOOL)
    return wire.cast(wire.number(x), DatumType.BOOL)
