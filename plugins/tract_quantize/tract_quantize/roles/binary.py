"""Sums, and bounds."""

from __future__ import annotations

from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add, Binary, Max, Min
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import uniform_operand
from tract_quantize.registry import ROLES, Bound, Joins, Role, Shift

ROWS = Rows()


@ROWS.row(ROLES, Add)
def add(op: Add, model: TypedModel, node: TypedNode) -> Role | None:
    """Known numbers that are added, as a bias; or the sum of two tensors of the same shape"""
    known = [slot for slot in (0, 1) if model.constant(node.inputs[slot]) is not None]
    facts = model.input_facts(node)
    if len(known) == 1:
        data = 1 - known[0]
        return Shift(data) if _are_same(model, facts[data], node.outputs[0].fact) else None
    return Joins() if not known and _are_same(model, *facts) else None


def _are_same(model: TypedModel, one: TypedFact, other: TypedFact) -> bool:
    """Whether two tensors certainly have one shape."""
    return one.rank == other.rank and all(model.known.same(a, b) for a, b in zip(one.shape, other.shape, strict=True))


@ROWS.row(ROLES, Max, Min)
def bound(op: Binary, model: TypedModel, node: TypedNode) -> Role | None:
    """A bound that is one known number"""
    found = uniform_operand(model, node)
    if found is None or not _are_same(model, model.outlet_fact(node.inputs[found[0]]), node.outputs[0].fact):
        return None
    return Bound(found[0])
