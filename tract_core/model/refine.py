"""Carry on what was found out: a size that is known better is known better by everything that mentions it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from tract_core.data import SymbolicArray, value_of
from tract_core.dims import Dim, TDim, is_symbolic, symbol, symbols_of
from tract_core.dims.theory import Theory
from tract_core.errors import DimError, TractError
from tract_core.model.fact import ShapeFact, TypedFact, in_type
from tract_core.model.fields import changed
from tract_core.model.graph import VACANT
from tract_core.model.substitute import substitute_in, symbols_announced
from tract_core.model.typed import TypedModel, TypedNode

_NO_SYMBOLS: Final = frozenset[str]()


def refine_facts(model: TypedModel, before: ShapeFact, after: ShapeFact, readers: Iterable[int]) -> list[int]:
    """A tensor whose shape was ``before`` is known better: tell the nodes that read it, and so on.

    A symbol that stood for nothing but a size of ``before`` gives way to that size everywhere. Returns the ids of the
    nodes whose facts changed.
    """
    found = _resolve(model, _settled(model, before, after))
    pending = deque(readers)
    while pending:
        node = model.nodes[pending.popleft()]
        if node.op is VACANT or not node.inputs:
            continue
        try:
            facts = model.facts_for(node.op, model.input_facts(node))
        except TractError:
            continue  # the facts that are there stay; a contradiction is reported when the model runs
        for outlet, fact in zip(node.outputs, facts, strict=True):
            better = _better(outlet.fact, fact)
            if better is not outlet.fact:
                outlet.fact = better
                found.append(node.id)
                pending.extend(reader.node for reader in outlet.successors)
    return found


def simplify_sizes(model: TypedModel) -> list[int]:
    """Let operators and facts that were wired earlier have what is known of sizes by now.

    The facts of the inputs stay, as they are what whoever runs the model goes by. Returns the ids of the nodes that
    changed.
    """
    model.conditions.review(model.symbols)
    known = model.known
    if not known.version:
        return []  # sizes are simple when nothing is known
    version, inputs = known.version, {outlet.node for outlet in model.inputs}
    nodes = [node for node in model.live_nodes() if node.id not in inputs]
    before = model.simple_by(known)
    found = [node.id for node in nodes if node.id >= before and _simplify(model, node, known)]
    if model.known is known and known.version == version:  # else sizes got names on the way, which others mention
        model.note_simple(known)
    return found


def _simplify(model: TypedModel, node: TypedNode, known: Theory) -> bool:
    """Whether anything in a node became simpler. What contradicts itself stays, and is told by the run."""
    announced = symbols_announced(node.op) if node.op.announces else _NO_SYMBOLS

    def simple(leaf: Any) -> Any:
        if isinstance(leaf, TDim):
            return known.simplify_but(leaf, announced)
        return value_of(leaf.map(simple).array) if isinstance(leaf, SymbolicArray) else leaf

    try:
        op = changed(node.op, lambda leaf: _unless_equal(leaf, simple(leaf)), (TypedFact,))
        facts = [_simple_fact(model, outlet.fact, announced) for outlet in node.outputs]
    except DimError:
        return False
    before = node.op, [outlet.fact for outlet in node.outputs]
    node.op = op
    for outlet, fact in zip(node.outputs, facts, strict=True):
        outlet.fact = fact
    return op is not before[0] or any(new is not old for new, old in zip(facts, before[1], strict=True))


def _simple_fact(model: TypedModel, fact: TypedFact, announced: frozenset[str]) -> TypedFact:
    if fact.shape.is_concrete and not isinstance(fact.value, SymbolicArray):
        return fact
    shape = ShapeFact(model.simplified(dim, announced) if is_symbolic(dim) else dim for dim in fact.shape)
    value = fact.value
    if isinstance(value, SymbolicArray):
        simple = value.map(lambda dim: model.simplified(dim, announced, is_size=False))
        value = in_type(value_of(simple.array), fact.datum_type)
    return fact if shape == fact.shape and value == fact.value else replace(fact, shape=shape, value=value)


def _unless_equal(before: Any, after: Any) -> Any:
    return before if after == before else after


def _settled(model: TypedModel, before: ShapeFact, after: ShapeFact) -> dict[str, Dim]:
    """The symbols of ``before`` that no input of the model binds, each with its size in ``after``."""
    found: dict[str, Dim] = {}
    for old, new in zip(before, after, strict=True):
        if old == new or not is_symbolic(old):
            continue
        names = symbols_of(old)
        if len(names) == 1 and not names & symbols_of(new) and not names & model.given_symbols():
            (name,) = names
            if old == symbol(name):
                found[name] = new
    return found


def _resolve(model: TypedModel, values: Mapping[str, Dim]) -> list[int]:
    found: list[int] = []
    if not values:
        return found
    for name, size in values.items():
        model.conditions.define(name, size)
    for node in model.live_nodes():
        op = substitute_in(node.op, values)
        facts = [outlet.fact.substitute(values) for outlet in node.outputs]
        same = all(fact is outlet.fact for fact, outlet in zip(facts, node.outputs, strict=True))
        if op is node.op and same:
            continue
        node.op = op
        for outlet, fact in zip(node.outputs, facts, strict=True):
            outlet.fact = fact
        found.append(node.id)
    return found


def _better(known: TypedFact, found: TypedFact) -> TypedFact:
    """``known`` itself when ``found`` adds nothing, else both together."""
    shape = tuple(
        new if is_symbolic(old) and not is_symbolic(new) else old
        for old, new in zip(known.shape, found.shape, strict=True)
    )
    value = known.value if known.value is not None else found.value
    if shape == known.shape and value is known.value:
        return known
    return replace(known, shape=ShapeFact(shape), value=value)
