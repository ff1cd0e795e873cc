"""Carry on what a patch found out: a size or a value that is known better is known better by everything behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tract_core.dims import Dim, is_symbolic, symbol, symbols_of
from tract_core.errors import TractError
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import VACANT, OutletId
from tract_core.model.substitute import substitute_in
from tract_core.model.typed import TypedModel


def refine_facts(model: TypedModel, old: OutletId, new: OutletId, readers: Iterable[int]) -> list[int]:
    """The tensor ``old``, now called ``new``, is known better: tell the nodes that read it, and so on.

    A symbol that stood for nothing but a size of ``old`` gives way to that size everywhere. Returns the ids of the
    nodes whose facts changed.
    """
    before, after = model.outlet_fact(old).shape, model.outlet_fact(new).shape
    changed = _resolve(model, _settled(model, before, after))
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
                changed.append(node.id)
                pending.extend(reader.node for reader in outlet.successors)
    return changed


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
    changed: list[int] = []
    if not values:
        return changed
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
        changed.append(node.id)
    return changed


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
