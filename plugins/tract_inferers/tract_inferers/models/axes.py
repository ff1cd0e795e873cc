"""Where the agents of a model may stand: for each input the axes that can be theirs, as far as its shape tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from tract_core.dims import is_symbolic, symbol_name
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel

_MOST_WAYS: Final = 16
"""Ways to place the agents that are tried."""


@frozen
class Place:
    """Where the agents of one input may stand: ``axes``, the likeliest first, and the symbol that they have there.

    ``symbol``: ``None`` where the input is for one agent, with a size of 1 that would have to become a symbol.
    """

    axes: tuple[int, ...]
    symbol: str | None


def places(model: TypedModel) -> list[Place]:
    """Where the agents of each input may stand. Raises Unsupported where there is no place, or too many symbols."""
    if not model.inputs:
        raise Unsupported("the model has no inputs, so nothing is to be observed", where="model", hint=_EXPORT)
    named = [(model.outlet_name(outlet), model.outlet_fact(outlet)) for outlet in model.inputs]
    others = _more_symbols([fact for _, fact in named])
    if others:
        values = ", ".join(f'"{name}": 16' for name in others)
        hint = f"""give it a value: model.transform('{{"name": "set_symbols", "values": {{{values}}}}}')"""
        inputs = "; ".join(f"{name}: {fact}" for name, fact in named)
        raise Unsupported(f"one size can be the number of agents, there are more: {inputs}", where="inputs", hint=hint)
    return [_place(model, name, fact) for name, fact in named]


def ways(found: Sequence[Place], facts: Sequence[TypedFact]) -> Iterator[tuple[int, ...]]:
    """Axes for all inputs, the likeliest way first. Inputs of one shape have their agents along one axis."""
    groups = [tuple(fact.shape) for fact in facts]
    kinds = {group: place.axes for group, place in zip(groups, found, strict=True)}
    for number, axes in enumerate(product(*kinds.values())):
        if number == _MOST_WAYS:
            return
        chosen = dict(zip(kinds, axes, strict=True))
        yield tuple(chosen[group] for group in groups)


def _place(model: TypedModel, name: str, fact: TypedFact) -> Place:
    symbolic = [axis for axis, size in enumerate(fact.shape) if is_symbolic(size)]
    if symbolic:
        size = fact.shape[symbolic[0]]
        symbol = symbol_name(size)
        if symbol is None:
            problem = f"{fact} grows with the agents, but not by one for each: its size is {size}"
            raise Unsupported(problem, where=f"input {name!r}", hint=_EXPORT)
        return Place((symbolic[0],), None if model.symbols.is_unnamed(size) else symbol)
    ones = tuple(axis for axis, size in enumerate(fact.shape) if size == 1)
    if not ones:
        problem = f"{fact} has no axis of agents: no size is a symbol, or 1"
        raise Unsupported(problem, where=f"input {name!r}", hint=_EXPORT)
    return Place(ones, None)


def _more_symbols(facts: Sequence[TypedFact]) -> list[str]:
    """The symbols that cannot be the number of agents, where an input has more than one symbolic size."""
    crowded = [fact for fact in facts if sum(map(is_symbolic, fact.shape)) > 1]
    if not crowded:
        return []
    first = {symbol for fact in facts for symbol in _first_symbol(fact)}
    rest = {symbol for fact in crowded for symbol in fact.shape.symbols()}
    return sorted(rest - first) or sorted(rest)


def _first_symbol(fact: TypedFact) -> frozenset[str]:
    sizes = [size for size in fact.shape if is_symbolic(size)]
    name = symbol_name(sizes[0]) if sizes else None
    return frozenset() if name is None else frozenset([name])


_EXPORT: Final = (
    "export it with an axis of agents in front, as N,64,f32 or 1,64,f32, and not for another number of them"
)
