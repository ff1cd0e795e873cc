"""Branches."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import TractError
from tract_core.model.choices import inside, is_about_facts, questions
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.ops.if_then_else_wiring import Body, known_condition, wire_if
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.body import argument_of, outlets_read, read_body
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import Wiring

ROWS = Rows()


@tf_op(ROWS, "If", "StatelessIf")
def if_then_else(node: GraphNode, wire: Wiring) -> Sequence[OutletId]:
    """One of two functions; the right one takes the node's place when the condition is known"""
    condition = truth_of(wire, wire.input(0))
    taken = known_condition(wire, condition)
    if taken is not None:
        model, captured = _body(node, wire, "then_branch" if taken else "else_branch", own_scope=False)
        return inline_body(wire.model, model, captured)
    since = questions()
    then, other = (_branch(node, wire, name) for name in ("then_branch", "else_branch"))
    return wire.through(wire_if, condition, then, other, since=since)


def truth_of(wire: Wiring, x: OutletId) -> OutletId:
    """Whether a condition holds: a number that is not 0 does, and so does a list that is not empty."""
    fact = wire.fact(x)
    if fact.rank and not is_symbolic(fact.shape.volume) and fact.shape.volume != 1:
        return wire.cast(wire.const(fact.shape.volume), DatumType.BOOL)
    return wire.cast(wire.number(x), DatumType.BOOL)


def _body(node: GraphNode, wire: Wiring, name: str, *, own_scope: bool) -> Body:
    slots = range(1, len(wire.slots))
    given = [argument_of(wire, slot) for slot in slots]
    model = read_body(node, wire, node.function(name), given, own_scope=own_scope)
    return model, outlets_read(wire, slots)


def _branch(node: GraphNode, wire: Wiring, name: str) -> Body | TractError:
    """A branch, or why it cannot be typed. Raises TractError for what is wrong with it whatever the sizes."""
    try:
        with inside(name):
            return _body(node, wire, name, own_scope=True)
    except TractError as error:
        if not is_about_facts(error):
            raise
        return error
