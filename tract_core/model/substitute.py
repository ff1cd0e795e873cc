"""Find and replace symbols inside operators, by looking at their fields: nobody writes it per operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from tract_core.data import SymbolicArray
from tract_core.dims import Dim, TDim, substitute
from tract_core.model.fact import TypedFact
from tract_core.model.fields import changed, field_names, leaves
from tract_core.model.op import TypedOp
from tract_core.model.typed_graph import TypedGraph

T = TypeVar("T")

_NONE: frozenset[str] = frozenset()
_WHOLE: Final = (TypedFact,)
"""What knows its symbols itself."""


def symbols_in(value: object) -> frozenset[str]:
    """Names of all symbols that occur in an operator's fields, at any depth. Raises FactError as `leaves` does."""
    found = _NONE
    for leaf in leaves(value, _WHOLE):
        if leaf.__class__ is TDim:
            found |= leaf.symbols
        elif isinstance(leaf, (SymbolicArray, TypedFact)):
            found |= leaf.symbols()
        elif isinstance(leaf, TypedGraph):
            found |= _symbols_in_graph(leaf)
    return found


def symbols_needed(op: TypedOp) -> frozenset[str]:
    """Names of the symbols that an operator must know before it runs: all but those that it only announces."""
    if not op.announces:
        return symbols_in(op)
    return _NONE.union(*(symbols_in(getattr(op, name)) for name in field_names(op) if name not in op.announces))


def symbols_announced(op: TypedOp) -> frozenset[str]:
    """Names of the symbols that running an operator binds."""
    return _NONE.union(*(symbols_in(getattr(op, name)) for name in op.announces))


def symbols_told(op: TypedOp) -> frozenset[str]:
    """Names of the symbols whose values the state of an operator tells when a turn begins."""
    return _NONE.union(*(symbols_in(getattr(op, name)) for name in op.tells))


def _symbols_in_graph(graph: TypedGraph) -> frozenset[str]:
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
        if isinstance(leaf, (SymbolicArray, TypedFact, TypedGraph)):
            return leaf.substitute(values)
        return leaf

    return changed(value, replaced, _WHOLE)
