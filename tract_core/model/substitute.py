"""Replace symbols inside operators, by looking at their fields.

Works on any frozen dataclass whose fields hold sizes, tuples, known values, facts, other dataclasses, or models: nobody
writes a substitution per operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tract_core.data import Constant, SymbolicArray
from tract_core.dims import Dim, TDim, substitute, symbols_of
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import Graph
from tract_core.model.op import TypedOp

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel

T = TypeVar("T")

_LEAVES = (str, bytes, int, float, complex, bool, type(None), Constant)
_NONE: frozenset[str] = frozenset()


def symbols_in(value: object) -> frozenset[str]:
    """Names of all symbols that occur in an operator's fields, at any depth."""
    if isinstance(value, _LEAVES):
        return _NONE
    if isinstance(value, TDim):
        return symbols_of(value)
    if isinstance(value, (SymbolicArray, TypedFact)):
        return value.symbols()
    if isinstance(value, (tuple, list)):
        return _NONE.union(*(symbols_in(item) for item in cast("Sequence[object]", value)))
    if isinstance(value, Graph):
        return _symbols_in_graph(cast("TypedModel", value))
    if is_dataclass(value) and not isinstance(value, type):
        return _NONE.union(*(symbols_in(getattr(value, name)) for name in _field_names(type(value))))
    return _NONE


def symbols_needed(op: TypedOp) -> frozenset[str]:
    """Names of the symbols that an operator must know before it runs: all but those that it only announces."""
    if not op.announces:
        return symbols_in(op)
    return _NONE.union(*(symbols_in(getattr(op, name)) for name in _field_names(type(op)) if name not in op.announces))


def symbols_announced(op: TypedOp) -> frozenset[str]:
    """Names of the symbols that running an operator binds."""
    return _NONE.union(*(symbols_in(getattr(op, name)) for name in op.announces))


def _symbols_in_graph(graph: TypedModel) -> frozenset[str]:
    found = graph.conditions.symbols
    for node in graph.live_nodes():
        found |= symbols_in(node.op)
        found = found.union(*(outlet.fact.symbols() for outlet in node.outputs))
    return found


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def substitute_in(value: T, values: Mapping[str, Dim]) -> T:
    """``value`` with symbols replaced; the very same object when none of them occurs in it."""
    return _substitute(value, values)


def _substitute(value: Any, values: Mapping[str, Dim]) -> Any:
    if isinstance(value, _LEAVES):
        return value
    if isinstance(value, TDim):
        return substitute(value, values)
    if isinstance(value, (SymbolicArray, TypedFact)):
        return value.substitute(values)
    if isinstance(value, tuple):
        before = cast("tuple[Any, ...]", value)
        items = [_substitute(item, values) for item in before]
        if all(new is old for new, old in zip(items, before, strict=True)):
            return before
        return ShapeFact(items) if isinstance(before, ShapeFact) else tuple(items)
    if isinstance(value, Graph):
        from tract_core.transforms.set_symbols import substitute_in_model

        return substitute_in_model(cast("TypedModel", value), values)
    if is_dataclass(value) and not isinstance(value, type):
        changes = {name: _substitute(getattr(value, name), values) for name in _field_names(type(value))}
        changes = {name: new for name, new in changes.items() if new is not getattr(value, name)}
        return replace(value, **changes) if changes else value
    return value
