"""The value of a size, where symbols have values, and what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Final

from tract_core.dims.atoms import Kind
from tract_core.dims.tdim import Dim, TDim
from tract_core.errors import DimError

_NO_NAMES: Final = frozenset[str]()


def is_symbolic(dim: Dim) -> bool:
    """Whether ``dim`` is an expression, not a number."""
    return isinstance(dim, TDim)


def is_one(dim: Dim) -> bool:
    """Whether a size is the number 1."""
    return not is_symbolic(dim) and dim == 1


def symbols_of(dim: Dim) -> frozenset[str]:
    """The names of all symbols in ``dim``."""
    return dim.symbols if type(dim) is TDim else _NO_NAMES


def evaluate(dim: Dim, mapping: Mapping[str, int]) -> int:
    """The value of ``dim``, given that of each symbol.

    Raises DimError naming every symbol that has no value, and where a broadcast gets two different numbers.
    """
    if isinstance(dim, int):
        return dim
    try:
        return _value(dim, mapping)
    except KeyError:
        missing = symbols_of(dim) - mapping.keys()
        if not missing:
            raise
        raise _missing_values(dim, missing, mapping) from None


def complete(values: dict[str, int], definitions: Iterable[tuple[str, TDim]]) -> None:
    """Add the values of names, which follow from those of other symbols. ``definitions``: what each stands for.

    A size that contradicts itself gets none: whoever wants it so has a condition, which says that.
    """
    for name, dim in definitions:
        if name not in values and symbols_of(dim) <= values.keys():
            try:
                values[name] = evaluate(dim, values)
            except DimError:
                continue


def _value(dim: Dim, mapping: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    total = dim.constant
    for product, number in dim.terms.items():
        term = number
        for factor in product:
            if isinstance(factor, str):
                term *= mapping[factor]
            else:
                term *= _VALUES[factor.kind]([_value(arg, mapping) for arg in factor.args])
        total += term
    return total


def _missing_values(dim: Dim, missing: frozenset[str], mapping: Mapping[str, int]) -> DimError:
    names = ", ".join(sorted(missing))
    given = ", ".join(f"{name}={value}" for name, value in sorted(mapping.items())) or "none"
    return DimError(f"{dim} needs values for {names}; values given: {given}", hint=f"give a value to {names}")


def _broadcast_values(values: Sequence[int]) -> int:
    from tract_core.dims.build import broadcast  # which the algebra needs, and hardly any size

    result = reduce(broadcast, values)
    assert isinstance(result, int)
    return result


_VALUES: dict[Kind, Callable[[Sequence[int]], int]] = {
    Kind.DIV: lambda values: values[0] // values[1],
    Kind.MIN: min,
    Kind.MAX: max,
    Kind.BROADCAST: _broadcast_values,
    Kind.GE: lambda values: int(values[0] >= 0),
    Kind.EQ: lambda values: int(values[0] == 0),
}
