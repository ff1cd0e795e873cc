"""Branches."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import LimitExceeded
from tract_core.limits import limits_now
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.ops.if_then_else_wiring import Body, wire_branches
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import wire_cast
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.body import argument_of, outlets_read, read_body
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "If", "StatelessIf")
def if_then_else(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId]:
    """One of two functions; the right one takes the node's place when the condition is known"""

    def read(name: str, own_scope: bool) -> Body:
        return _body(node, wire, node.function(name), own_scope=own_scope)

    condition = truth_of(wire, wire.input(0))
    return wire.through(wire_branches, condition, ("then_branch", "else_branch"), read)


@tf_op(ROWS, "Case", "StatelessCase")
def case(node: GraphNode, wire: GraphWiring) -> Sequence[OutletId]:
    """The function whose number is given; the last one for a number that none has"""
    branches, number = node.functions("branches"), wire.tensor(0).reshape(())
    if not 1 <= len(branches) <= limits_now().max_depth:
        raise LimitExceeded(f"{len(branches)} branches, from 1 to {limits_now().max_depth} are allowed")
    # A number below 0 is none of theirs either.
    number = (number < 0).where(len(branches) - 1, number)
    return _one_of(node, wire, number, branches)


def _one_of(node: GraphNode, wire: GraphWiring, number: Wired, branches: Sequence[Message]) -> Sequence[OutletId]:
    """The first function where the number is 0, else one of the others, whose numbers are one less."""
    if len(branches) == 1:
        return inline_body(wire.model, *_body(node, wire, branches[0], own_scope=False))

    def read(name: str, own_scope: bool) -> Body:
        if name == "branch":
            return _body(node, wire, branches[0], own_scope=own_scope)
        return _others(node, wire, number, branches[1:])

    return wire.through(wire_branches, number.eq(0).outlet, ("branch", "others"), read)


def _others(node: GraphNode, wire: GraphWiring, number: Wired, branches: Sequence[Message]) -> Body:
    """The choice among the other functions, as a branch."""
    made = wire.model.empty_like()
    slots: list[OutletId | None] = []
    captured: list[OutletId] = []
    for slot, outlet in enumerate((number.outlet, *wire.slots[1:])):
        fact = None if outlet is None else wire.fact(outlet)
        if outlet is None or fact is None:
            slots.append(None)
        elif fact.value is not None:
            slots.append(wire_cast(made, f"known{slot}", made.add_const(f"known{slot}", fact.value), fact.datum_type))
        else:
            slots.append(made.add_source(f"given{slot}", fact))
            captured.append(outlet)
    inside = GraphWiring(made, "others", slots, wire.marks)
    made.set_outputs(_one_of(node, inside, inside.tensor(0) - 1, branches))
    return made, captured


def truth_of(wire: GraphWiring, x: OutletId) -> OutletId:
    """Whether a condition holds: a number that is not 0 does, and so does a list that is not empty."""
    fact = wire.fact(x)
    if fact.rank and not is_symbolic(fact.shape.volume) and fact.shape.volume != 1:
        return wire.cast(wire.const(fact.shape.volume), DatumType.BOOL)
    return wire.cast(wire.number(x), DatumType.BOOL)


def _body(node: GraphNode, wire: GraphWiring, function: Message, *, own_scope: bool) -> Body:
    slots = range(1, len(wire.slots))
    given = [argument_of(wire, slot) for slot in slots]
    return read_body(node, wire, function, given, own_scope=own_scope), outlets_read(wire, slots)
