"""What a model knows beside its graph, as lines that begin with ``extension``.

Those that begin with ``tract_py`` hold JSON, with semicolons escaped, and mean nothing to others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from tract_core.dims import Assertion, Dim, TDim, symbol, symbols_of
from tract_core.dims.atoms import Atom, Kind
from tract_core.dims.names import write_name
from tract_core.errors import DimError, Unsupported
from tract_core.model.conditions import Condition
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.fields import leaves
from tract_core.model.op import TypedOp
from tract_core.model.substitute import substitute_in, symbols_in
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedGraph

ASSERTION: Final = "tract_py_assert"
"""What is asserted of symbols, in words that the established engine does not read."""
CONDITION: Final = "tract_py_condition"
"""``[left, relation, right, origin]``: what every run checks of sizes, and for which node."""
DEFINITION: Final = "tract_py_definition"
"""``[symbol, size]``: what a symbol is that conditions mention and that nothing binds."""
SCENARIO: Final = "tract_py_scenario"
"""The name of a way to use the model, of which nothing is asserted."""
_LONGEST: Final = 2048
"""Characters of a size that is written in full."""
NAMED: Final = "tract_py_named"
"""``[name, size]``: a symbol that is the name of a longer size."""
UNNAMED: Final = "tract_py_unnamed"
"""A symbol that stands for a size that nobody named."""
NAME: Final = "tract_py_name"
"""``[written, name]``: what an input or an output is called, where that cannot be written."""
SHAPE: Final = "tract_py_shape"
"""``[tensor, size, ...]``: a shape in other words than wiring finds, as ``S`` where that must be 3."""


def symbol_lines(model: TypedModel, *, ours: bool = True) -> Iterator[str]:
    """The symbols of a model, in their order, and what is asserted of them.

    ``ours``: whether only this project reads the archive. Others take no archive with an assertion that they cannot
    read, as one in which sizes are compared; so these are lines that others pass over.
    """
    declared, names = model.symbols.names, model.symbols.definitions
    mentioned = _mentioned(model)
    mentioned |= {name for name, _ in names.mentioned(mentioned)}
    left_out = {name for name, _ in names} - mentioned
    for name in [*(one for one in declared if one not in left_out), *sorted(mentioned.difference(declared))]:
        yield f"tract_symbol {_escaped(write_name(name))}"
    for assertion in model.symbols:
        if ours or (_is_linear(assertion.left) and _is_linear(assertion.right)):
            yield f"tract_assert {_escaped(str(assertion))}"
        else:
            yield _line(ASSERTION, str(assertion))
    if not ours:
        yield from (f"tract_assert {_escaped(str(assertion))}" for assertion in _lowest_sizes(model))


def _lowest_sizes(model: TypedModel) -> Iterator[Assertion]:
    """Where symbols must begin for shapes to fit, as others do not find out: ``B>=1`` where ``min(1,B)`` must be 1."""
    known = model.symbols.copy()
    bound = frozenset[str]().union(*(model.outlet_fact(outlet).symbols() for outlet in model.inputs))
    for condition, _ in model.conditions:
        for size, lowest in _at_least(condition):
            told = symbols_of(size) <= bound and _is_linear(size) and not known.less_or_equal(lowest, size)
            if told:
                yield known.add_assertion(Assertion(size, ">=", lowest))


def _at_least(condition: Condition) -> Iterator[tuple[Dim, int]]:
    """Sizes that a condition wants to be no smaller than a number, as it says what the smallest of them is."""
    left, right = condition.left, condition.right
    if condition.relation == "==" and isinstance(left, TDim) and isinstance(right, int) and len(left.terms) == 1:
        ((factors, times),) = left.terms.items()
        smaller = factors[0]
        if len(factors) == 1 and isinstance(smaller, Atom) and smaller.kind is Kind.MIN:
            lowest, rest = divmod(right - left.constant, times)
            yield from ((size, lowest) for size in smaller.args if not rest and size != lowest)


def _is_linear(size: Dim) -> bool:
    """Whether it is a sum of symbols and numbers. The established engine compares no others for certain.

    It reads no comparison in another one, and its version 0.23.9 does not come back from ``B*S<=100`` and
    ``S/2==2*(S/4)``.
    """
    return isinstance(size, int) or all(len(term) == 1 and isinstance(term[0], str) for term in size.terms)


def _mentioned(model: TypedModel) -> frozenset[str]:
    """The symbols in operators, facts and conditions. A body has lines of its own."""
    found = model.conditions.symbols
    for node in model.live_nodes():
        found = found.union(*(outlet.fact.symbols() for outlet in node.outputs), _symbols_in(node.op))
    return found


def _symbols_in(op: TypedOp) -> frozenset[str]:
    return symbols_in(tuple(leaf for leaf in leaves(op, (TypedFact,)) if not isinstance(leaf, TypedGraph)))


def own_lines(model: TypedModel, names: Mapping[str, str]) -> Iterator[str]:
    """What only ``tract_py`` says. ``names``: of inputs and outputs, by what is written for them."""
    scope, conditions = model.symbols, model.conditions
    yield from (_line(NAMED, [name, str(size)]) for name, size in scope.definitions.mentioned(_mentioned(model)))
    unnamed = [name for name in scope.names if scope.is_unnamed(symbol(name)) and name not in scope.definitions]
    yield from (_line(UNNAMED, name) for name in unnamed)
    asserted = {assertion.scenario for assertion in scope}
    yield from (_line(SCENARIO, name) for name in scope.scenarios if name not in asserted)
    for condition, origin in conditions:
        yield _line(CONDITION, [str(condition.left), condition.relation, str(condition.right), origin])
    for name, size in conditions.definitions.items():
        if name in conditions.symbols:
            yield _line(DEFINITION, [name, str(size)])
    yield from (_line(NAME, [written, name]) for written, name in names.items() if written != name)


def shape_line(name: str, shape: ShapeFact) -> str:
    """The line for the shape of a tensor, by its name in the file."""
    return _line(SHAPE, [name, *map(str, shape)])


def is_same_shape(model: TypedModel, a: ShapeFact, b: ShapeFact) -> bool:
    """Whether two shapes are the same, as far as is known of the symbols of a model."""
    return len(a) == len(b) and all(_is_same(model, x, y) for x, y in zip(a, b, strict=True))


def _is_same(model: TypedModel, a: Dim, b: Dim) -> bool:
    return a == b or model.conditions.answer(Condition(a, "==", b), model.symbols) is True


def _line(what: str, content: object) -> str:
    return f"{what} {_escaped(json.dumps(content))}"


def _escaped(text: str) -> str:
    """A line ends at the first semicolon. There are none but in quotes, where the same escape means one everywhere."""
    return text.replace(";", "\\u003b")


def with_sizes_in_full(model: TypedModel, *, ours: bool) -> TypedModel:
    """A copy in whose operators sizes stand that have a name, as only this project reads what names stand for.

    ``ours``: whether only this project reads the archive. Then names of sizes that are too long for that stay; raises
    Unsupported otherwise.
    """
    values = model.symbols.definitions.in_full(_LONGEST)

    def in_full(op: TypedOp) -> TypedOp:
        try:
            found = substitute_in(op, values)
        except DimError:
            found = op
        left = {name for name, _ in model.symbols.definitions.mentioned(_symbols_in(found))}
        if left and not ours:
            raise Unsupported(
                f"a size of {op.name} would take more than {_LONGEST} characters",
                hint="give some of the model's symbols values with set_symbols, or allow the registry tract_py",
            )
        return found

    return model.mapped(in_full, lambda fact: fact) if values else model
