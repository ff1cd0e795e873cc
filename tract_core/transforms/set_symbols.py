"""Give symbols values, everywhere in a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tract_core.dims import Assertion, Dim, SymbolScope, TDim, parse_dim, substitute, symbols_of
from tract_core.errors import DimError, TractError, TransformError
from tract_core.model.substitute import substitute_in, symbols_in
from tract_core.model.typed import TypedModel


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


@dataclass(frozen=True, slots=True)
class SetSymbols:
    """Replace symbols by numbers or by expressions over symbols."""

    name: ClassVar[str] = "set_symbols"
    values: Mapping[str, int | str | TDim] = field(
        metadata={"doc": "symbols and their values: numbers, or expressions as '2*S'"}
    )

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with the symbols replaced.

        Raises TransformError for unknown symbols and for values that do not fit.
        """
        values = self._sizes()
        known = symbols_in(model) | set(model.symbols.names)
        unknown = [name for name in values if name not in known]
        if unknown:
            listed = ", ".join(sorted(known)) or "none"
            raise TransformError(
                f"set_symbols: the model has no symbol {', '.join(map(str, unknown))}; its symbols: {listed}"
            )
        try:
            result = substitute_in_model(model, values)
            if result is not model:
                _check_conditions(result)
                result.check_consistency()
                return result
        except TractError as error:
            given = ", ".join(f"{name}={value}" for name, value in values.items())
            text = f"set_symbols with {given} does not fit the model: {error.problem}"
            raise TransformError(text, where=error.where, hint=error.hint) from error
        return model.clone()

    def _sizes(self) -> dict[str, Dim]:
        if not isinstance(self.values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: may come from JSON
            raise TransformError(f"set_symbols: 'values' is {self.values!r}, wanted {{symbol: number or expression}}")
        return {name: _size(name, value) for name, value in self.values.items()}


def _check_conditions(model: TypedModel) -> None:
    for condition, origin in model.conditions:
        problem = None if condition.symbols else condition.broken({})
        if problem is not None:
            raise DimError(problem, where=origin)


def _size(name: str, value: Any) -> Dim:
    if isinstance(value, str):
        value = parse_dim(value)
    if isinstance(value, TDim):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise TransformError(f"set_symbols: {name} is {value!r}, wanted a number or an expression")
    if value < 0:
        raise TransformError(f"set_symbols: {name} is {value}; symbols stand for sizes, which are 0 or more")
    return value
