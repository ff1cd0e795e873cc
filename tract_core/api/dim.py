"""Sizes, as users see them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

from tract_core.dims import Dim as Size
from tract_core.dims import TDim, parse_dim, substitute, symbols_of
from tract_core.errors import DimError


class Dim:
    """A size: a number, or an expression over symbols, such as ``(S+3)/4``. Immutable."""

    __slots__ = ("_size",)

    def __init__(self, size: int | str | TDim | Dim) -> None:
        """From a number, an expression, or its text form. Raises DimError for anything else."""
        if isinstance(size, Dim):
            size = size.size
        elif isinstance(size, str):
            size = parse_dim(size)
        self._size: Size = size if isinstance(size, TDim) else _whole(size, "a size")

    @property
    def size(self) -> Size:
        """The number or the expression, as the core has it."""
        return self._size

    def symbols(self) -> list[str]:
        """The names of the symbols in it, sorted."""
        return sorted(symbols_of(self._size))

    def eval(self, values: Mapping[str, int]) -> Dim:
        """With symbols replaced by numbers; those that ``values`` leaves out stay. Raises DimError for other values."""
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise DimError(f"values are a {type(values).__name__}, wanted a dictionary, as {{'S': 12}}")
        return Dim(substitute(self._size, {name: _value(name, value) for name, value in values.items()}))

    def to_int64(self) -> int:
        """The number. Raises DimError, naming the symbols, when it is not one yet."""
        try:
            return int(self._size)
        except DimError as error:
            example = dict.fromkeys(self.symbols(), 1)
            raise DimError(error.problem, hint=f"give its symbols values, as with .eval({example})") from None

    def dump(self) -> str:
        """The text form."""
        return str(self._size)

    __int__ = __index__ = to_int64
    __str__ = dump

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim):
            return self._size == other._size
        if isinstance(other, (int, TDim)):
            return self._size == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._size)

    def __repr__(self) -> str:
        return f"Dim({self.dump()!r})"


def _whole(number: Any, what: str) -> int:
    try:
        return index(number)
    except TypeError:
        raise DimError(f"{what} is a {type(number).__name__}, wanted a whole number") from None


def _value(name: str, value: Any) -> int:
    number = _whole(value, f"the value of {name}")
    if number < 0:
        raise DimError(f"the value of {name} is {number}; symbols stand for sizes, which are 0 or more")
    return number
