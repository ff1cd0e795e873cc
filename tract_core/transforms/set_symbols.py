"""Give symbols values, everywhere in a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from tract_core.dims import Dim, TDim, parse_dim
from tract_core.errors import DimError, TractError, TransformError
from tract_core.frozen import frozen
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel


@frozen
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
        known = (symbols_in(model) | set(model.symbols.names)).difference(name for name, _ in model.symbols.definitions)
        unknown = [name for name in values if name not in known]
        if unknown:
            listed = ", ".join(sorted(known)) or "none"
            raise TransformError(
                f"set_symbols: the model has no symbol {', '.join(map(str, unknown))}; its symbols: {listed}"
            )
        try:
            result = model.substitute(values)
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
