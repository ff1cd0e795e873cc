"""Transforms as users write them down: a name and parameters, checked when they are applied.

A spec needs no plugin to be written; applying one looks the transform up among what is installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from numbers import Integral
from types import NoneType
from typing import Any, ClassVar, Literal

from tract_core.api.dim import Dim
from tract_core.data import DatumType
from tract_core.dims import TDim
from tract_core.errors import DimError, TractError, TransformError


class TransformSpec:
    """A transform by name, with its parameters."""

    name: ClassVar[str]

    def parameters(self) -> dict[str, Any]:
        """The parameters, as JSON can hold them."""
        return {}

    def to_json(self) -> str:
        """``{"name": ..., parameter: value, ...}``, which `Model.transform` takes too."""
        return json.dumps({"name": self.name, **self.parameters()})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.parameters().items())})"


class SetSymbols(TransformSpec):
    """Give symbols values: numbers, or expressions over symbols."""

    name = "set_symbols"

    def __init__(self, values: Mapping[str, int | str | Dim | TDim] | None = None) -> None:
        self._values: dict[str, int | str] = {}
        if not isinstance(values, (Mapping, NoneType)):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise TransformError(f"values are a {type(values).__name__}, wanted a dictionary, as {{'B': 1}}")
        for symbol, value in (values or {}).items():
            self.value(symbol, value)

    def value(self, symbol: str, value: int | str | Dim | TDim) -> SetSymbols:
        """Add the value of one symbol; returns the spec."""
        if not isinstance(symbol, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise TransformError(f"a symbol is a text, got {type(symbol).__name__}")
        self._values[symbol] = _size(symbol, value)
        return self

    def parameters(self) -> dict[str, Any]:
        """``{"values": {symbol: value}}``."""
        return {"values": dict(self._values)}


class Pulse(TransformSpec):
    """Turn a model over a whole signal into one that takes it piece by piece."""

    name = "pulse"

    def __init__(
        self,
        pulse: int | str | Dim | TDim,
        *,
        symbol: str | None = None,
        past: int | Literal["all"] | None = None,
    ) -> None:
        """``pulse``: the size of a piece, in elements along the streaming axis.

        ``symbol``: the size of the whole signal. ``past``: how many positions attention looks back that has no limit of
        its own, or ``"all"``; by default such attention is refused.
        """
        try:
            self._pulse = str(_size("pulse", pulse))
        except DimError as error:
            problem = f"pulse: the pulse is {pulse!r}, which is no size: {error.problem}"
            raise TransformError(problem, hint="as in Pulse(8), or Pulse(8, symbol='T', past=128)") from None
        self._symbol = symbol
        self._past = _past(past)

    def symbol(self, symbol: str) -> Pulse:
        """Say which symbol is the size of the whole signal; returns the spec."""
        self._symbol = symbol
        return self

    def parameters(self) -> dict[str, Any]:
        """``{"pulse": ..., "symbol": ..., "past": ...}``, the latter two where they were given."""
        given = {"pulse": self._pulse, "symbol": self._symbol, "past": self._past}
        return {key: value for key, value in given.items() if value is not None}


class FloatPrecision(TransformSpec):
    """Compute in another float type, in all nodes or in those that the filters choose; inputs and outputs too."""

    name = "float_precision"

    def __init__(
        self,
        from_: DatumType | str,
        to: DatumType | str,
        *,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        keep_io_types: bool = False,
    ) -> None:
        """``include``, ``exclude``: parts of node names. ``keep_io_types``: inputs and outputs keep their types.

        Raises ValueError for types that are no floats.
        """
        self._from, self._to = _float(from_), _float(to)
        self._keep_io_types = keep_io_types
        self._include = None if include is None else _patterns(include)
        self._exclude = None if exclude is None else _patterns(exclude)

    def include(self, patterns: Iterable[str]) -> FloatPrecision:
        """Convert only nodes whose name contains one of these; returns the spec."""
        self._include = _patterns(patterns)
        return self

    def exclude(self, patterns: Iterable[str]) -> FloatPrecision:
        """Leave out nodes whose name contains one of these; returns the spec."""
        self._exclude = _patterns(patterns)
        return self

    def parameters(self) -> dict[str, Any]:
        """``{"from", "to", "include", "exclude", "keep_io_types"}``, the latter three where they were given."""
        options = {"include": self._include, "exclude": self._exclude, "keep_io_types": self._keep_io_types or None}
        given = {key: value for key, value in options.items() if value is not None}
        return {"from": self._from.short, "to": self._to.short, **given}


class NotFloatError(TransformError, ValueError):
    """A precision was asked for in a type that is no float."""


def _float(kind: Any) -> DatumType:
    try:
        found = DatumType.parse(kind) if isinstance(kind, str) else DatumType(kind)
    except (TractError, ValueError):
        found = None
    if found is None or not found.is_float():
        raise NotFloatError(f"float_precision converts float types, {kind} is none", hint="as 'f32', 'f16' or 'bf16'")
    return found


def _patterns(value: Any) -> list[str]:
    items: list[Any] = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)  # pyright: ignore[reportUnknownArgumentType]: checked next
    if not all(isinstance(item, str) for item in items):
        raise TransformError(f"names of nodes are chosen by a list of texts, got {value!r}")
    return items


def _past(value: Any) -> int | str | None:
    if value is None or (isinstance(value, str) and value == "all"):
        return value
    if isinstance(value, Integral) and value is not True and value is not False:
        return int(value)
    raise TransformError(f"pulse: past is {value!r}, wanted a number of positions, 0 or more, or 'all'")


def _size(name: str, value: Any) -> int | str:
    if isinstance(value, Integral) and value is not True and value is not False:
        return int(value)
    if isinstance(value, (str, Dim, TDim)):
        size = Dim(value).size
        return size if isinstance(size, int) else str(size)
    raise TransformError(f"the value of {name} is a {type(value).__name__}, wanted a number or an expression")
