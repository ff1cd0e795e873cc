"""Replace symbols inside operators, by looking at their fields, and in models: nobody writes it per operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from tract_core.data import SymbolicArray
from tract_core.dims import Assertion, Dim, SymbolScope, TDim, substitute, symbols_of
from tract_core.errors import DimError
from tract_core.model.fact import TypedFact
from tract_core.model.fields import changed, field_names, leaves
from tract_core.model.graph import Graph
from tract_core.model.op import TypedOp

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel

T = TypeVar("T")

_NONE: frozenset[str] = frozenset()
_WHOLE: Final = (TypedFact,)
"""What knows its symbols itself."""


def symbols_in(value: object) -> frozenset[str]:
    """Names of all symbols that occur in an operator's fields, at any depth. Raises FactError as `leaves` does."""
    found = _NONE
    for leaf in leaves(value, _WHOLE):
        if isinstance(leaf, TDim):
            found |= symbols_of(leaf)
        elif isinstance(leaf, (SymbolicArray, TypedFact)):
            found |= leaf.symbols()
        elif isinstance(leaf, Graph):
            found |= _symbols_in_graph(cast("TypedModel", leaf))
    return found


def symbols_needed(op: TypedOp) -> frozenset[str]:
    """Names of the symbols that an operator must know before it runs: all but those that it only announces."""
    if not op.announces:
        return symbols_in(op)
    return _NONE.union(*(symbols_in(getattr(op, name)) for name in field_names(op) if name not in op.announces))


def symbols_announced(op: TypedOp) -> frozenset[str]:
    """Names of the symbols that running an operator binds."""
    return _NONE.union(*(symbols_in(getattr(op, name)) for name in op.announces))


def _symbols_in_graph(graph: TypedModel) -> frozenset[str]:
    found = graph.conditions.symbols
    for node in graph.live_nodes():
        found |= symbols_in(node.op)
        found = found.union(*(outlet.fact.symbols() for outlet in node.outputs))
    return found


def substitute_in(value: T, values: Mapping[str, Dim]) -> T:
    """``value`` with symbols replaced; the very same object when none of them occurs in it."""

    def replaced(leaf: Any) -> Any:
        if isinstance(leaf, TDim):
            return substitute(leaf, values)
        if isinstance(leaf, (SymbolicArray, TypedFact)):
            return leaf.substitute(values)
        if isinstance(leaf, Graph):
            return substitute_in_model(cast("TypedModel", leaf), values)
        return leaf

    return changed(value, replaced, _WHOLE)


def substitute_in_model(model: TypedModel, values: Mapping[str, Dim]) -> TypedModel:
    """A copy of ``model`` with symbols replaced in every operator and fact; the very same model when none occurs in it.

    Ids and names stay. What is asserted of the symbols is asserted of their values; raises DimError when that is false.
    """
    if not symbols_in(model) & values.keys():
        return model
    scope = _scope_after(model.symbols, values)
    replaced = model.mapped(lambda op: substitute_in(op, values), lambda fact: fact.substitute(values), scope)
    replaced.conditions = model.conditions.substitute(values)
    return replaced


def _scope_after(scope: SymbolScope, values: Mapping[str, Dim]) -> SymbolScope:
    after = SymbolScope(name for name in scope.names if name not in values)
    for dim in values.values():
        for name in sorted(symbols_of(dim)):
            after.add(name)
    for name in scope.scenarios:
        after.add_scenario(name)
    for assertion in scope:
        replaced = Assertion(
            substitute(assertion.left, values), assertion.op, substitute(assertion.right, values), assertion.scenario
        )
        holds = replaced.holds({})
        if holds is None:
            after.add_assertion(replaced)
        elif not holds and assertion.scenario is None:
            given = ", ".join(f"{name}={value}" for name, value in values.items() if name in assertion.symbols)
            raise DimError(f"{assertion} does not hold for {given}", hint="choose values that the model allows")
    return after
