"""Branches."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import LimitExceeded, TractError
from tract_core.limits import limits_now
from tract_core.model.choices import inside, is_about_facts, questions
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.ops.if_then_else_wiring import Body, known_condition, wire_if
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import wire_cast
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.body import argument_of, outlets_read, read_body
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import Wiring

ROWS = Rows()


@tf_op(ROWS, "If", "StatelessIf")
def if_then_else(node: GraphNode, wire: Wiring) -> Sequence[OutletId]:
    """One of two functions; the right one takes the node's place when the condition is known"""
    branches = node.function("then_branch"), node.function("else_branch")
    condition = truth_of(wire, wire.input(0))
    taken = known_condition(wire, condition)
    if taken is not None:
        return inline_body(wire.model, *_body(node, wire, branches[0 if taken else 1], own_scope=False))
    since = questions()
    then, other = (_branch(node, wire, one) for one in branches)
    return wire.through(wire_if, condition, then, other, since=since)


@tf_op(ROWS, "Case", "StatelessCase")
def case(node: GraphNode, wire: Wiring) -> Sequence[OutletId]:
    """The function whose number is given; the last one for a number that none has"""
    branches, number = node.functions("branches"), wire.number(wire.input(0))
    if not 1 <= len(branches) <= limits_now().max_depth:
        raise LimitExceeded(f"{len(branches)} branches, from 1 to {limits_now().max_depth} are allowed")
    known = wire.constant(number)
    if known is not None:
        place = int(known) if 0 <= int(known) < len(branches) else len(branches) - 1
        return inline_body(wire.model, *_body(node, wire, branches[place], own_scope=False))
    return _one_of(node, wire, Wired(wire, number), branches)


def _one_of(node: GraphNode, wire: Wiring, number: Wired, branches: Sequence[Message]) -> Sequence[OutletId]:
    """The first function where the number is 0, else one of the others, whose numbers are one less."""
    if len(branches) == 1:
        return inline_body(wire.model, *_body(node, wire, branches[0], own_scope=False))
    since = questions()
    first = _branch(node, wire, branches[0])
    others = wire.model.empty_like()
    slots: list[OutletId | None] = [others.add_source("number", number.fact.without_value())]
    captured = [number.outlet]
    for slot, outlet in enumerate(wire.slots[1:], start=1):
        fact = None if outlet is None else wire.fact(outlet)
        if outlet is None or fact is None:
            slots.append(None)
        elif fact.value is not None:
            slots.append(
                wire_cast(others, f"known{slot}", others.add_const(f"known{slot}", fact.value), fact.datum_type)
            )
        else:
            slots.append(others.add_source(f"given{slot}", fact))
            captured.append(outlet)
    rest = Wiring(others, "rest", slots, wire.marks)
    others.set_outputs(_one_of(node, rest, Wired(rest, rest.input(0)) - 1, branches[1:]))
    return wire.through(wire_if, number.eq(0).outlet, first, (others, captured), since=since)


def truth_of(wire: Wiring, x: OutletId) -> OutletId:
    """Whether a condition holds: a number that is not 0 does, and so does a list that is not empty."""
    fact = wire.fact(x)
    if fact.rank and not is_symbolic(fact.shape.volume) and fact.shape.volume != 1:
        return wire.cast(wire.const(fact.shape.volume), DatumType.BOOL)
    return wire.cast(wire.number(x), DatumType.BOOL)


def _body(node: GraphNode, wire: Wiring, function: Message, *, own_scope: bool) -> Body:
    slots = range(1, len(wire.slots))
    given = [argument_of(wire, slot) for slot in slots]
    return read_body(node, wire, function, given, own_scope=own_scope), outlets_read(wire, slots)


def _branch(node: GraphNode, wire: Wiring, function: Message) -> Body | TractError:
    """A branch, or why it cannot be typed. Raises TractError for what is wrong with it whatever the sizes."""
    try:
        with inside(function.signature.name):
            return _body(node, wire, function, own_scope=True)
    except TractError as error:
        if not is_about_facts(error):
            raise
        return error
