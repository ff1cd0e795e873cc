"""Find the values of symbols from sizes that were observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.dims.atoms import Factor, Kind
from tract_core.dims.names import write_name
from tract_core.dims.tdim import Dim, TDim
from tract_core.dims.values import evaluate, symbols_of
from tract_core.dims.walk import substitute
from tract_core.errors import DimError

_LARGEST = (1 << 63) - 1
"""No axis of an array is longer."""


def bind(dims: Sequence[Dim], sizes: Sequence[int], bound: Mapping[str, int]) -> dict[str, int]:
    """The values of symbols for which each of ``dims`` is the size at the same place in ``sizes``.

    Starts from the values in ``bound``, which are part of the result. A size with one symbol left is solved where
    exactly one value fits; this is repeated while it finds more. A symbol that the sizes leave open is not in the
    result. Raises DimError where no values fit: it names the expression, both sizes and the values found until then.
    """
    if len(dims) != len(sizes):
        raise DimError(f"found {len(sizes)} sizes for {len(dims)} axes", hint="give one size per axis")
    values = dict(bound)
    waiting = list(zip(dims, sizes, strict=True))
    while True:
        still_waiting = [pair for pair in waiting if not _settle(*pair, values)]
        if len(still_waiting) == len(waiting):
            return values
        waiting = still_waiting


def linear_in_one_symbol(dim: Dim) -> tuple[str, int, int] | None:
    """``(symbol, factor, constant)`` where ``dim`` is ``factor * symbol + constant``; ``None`` for anything else."""
    if isinstance(dim, int) or len(dim.terms) != 1:
        return None
    ((product, factor),) = dim.terms.items()
    (only, *others) = product
    return None if others or not isinstance(only, str) else (only, factor, dim.constant)


def symbol_name(dim: Dim) -> str | None:
    """The symbol that ``dim`` is, if it is nothing else."""
    found = linear_in_one_symbol(dim)
    return found[0] if found is not None and found[1:] == (1, 0) else None


def _settle(dim: Dim, size: int, values: dict[str, int]) -> bool:
    """Whether nothing is left to find out from ``dim``; adds the symbol that it determines to ``values``."""
    rest = _with_values(dim, size, values)
    if isinstance(rest, int):
        if rest != size:
            raise _contradiction(dim, size, f"{rest} was expected", values)
        return True
    names = symbols_of(rest)
    if len(names) > 1:
        return False
    (name,) = names
    value = _solve(rest, name, size, dim, values)
    if value is not None:
        values[name] = value
    return value is not None


def _with_values(dim: Dim, size: int, values: Mapping[str, int]) -> Dim:
    if isinstance(dim, int):
        return dim
    try:
        return substitute(dim, values)
    except DimError as error:
        raise _contradiction(dim, size, error.problem, values) from error


def _solve(rest: TDim, name: str, size: int, dim: Dim, values: Mapping[str, int]) -> int | None:
    """The one value of ``name`` for which ``rest`` is ``size``; ``None`` where it cannot be singled out."""
    linear = linear_in_one_symbol(rest)
    if linear is not None:
        _, factor, constant = linear
        value, left_over = divmod(size - constant, factor)
        if left_over or value < 0:
            kind = "whole" if left_over else "non-negative"
            raise _contradiction(dim, size, f"no {kind} value of {name} gives that", values)
        return value
    direction = _direction(rest)
    if direction == 0:
        return None
    rising, target = (rest, size) if direction > 0 else (-rest, -size)
    value = _first_reaching(rising, name, target)
    if value is None or _at(rising, name, value) != target:
        raise _contradiction(dim, size, f"no non-negative value of {name} gives that", values)
    return None if _at(rising, name, value + 1) == target else value


def _direction(dim: Dim) -> int:
    """1 where ``dim`` never falls while its symbol grows, -1 where it never rises, 0 where neither is plain to see."""
    if isinstance(dim, int):
        return 1
    falls = next(iter(dim.terms.values())) < 0
    for product, factor in dim.terms.items():
        if (factor < 0) != falls or not all(map(_rises, product)):
            return 0
    return -1 if falls else 1


def _rises(factor: Factor) -> bool:
    """Whether ``factor`` is never negative and never falls while its symbol grows."""
    if isinstance(factor, str):
        return True
    if factor.kind not in (Kind.DIV, Kind.MIN, Kind.MAX):
        return False
    return all(_direction(arg) == 1 and _starts_at(arg) >= 0 for arg in factor.args)


def _starts_at(dim: Dim) -> int:
    return evaluate(dim, dict.fromkeys(symbols_of(dim), 0))


def _first_reaching(dim: Dim, name: str, target: int) -> int | None:
    """The smallest value of ``name`` for which ``dim``, which never falls, is ``target`` or more."""
    low, high = 0, 1
    while _at(dim, name, high) < target:
        low, high = high, high * 2
        if high > _LARGEST:
            return None
    while low < high:
        middle = (low + high) // 2
        if _at(dim, name, middle) < target:
            low = middle + 1
        else:
            high = middle
    return low


def _at(dim: Dim, name: str, value: int) -> int:
    return evaluate(dim, {name: value})


def _contradiction(dim: Dim, size: int, reason: str, values: Mapping[str, int]) -> DimError:
    used = ", ".join(f"{write_name(name)}={values[name]}" for name in sorted(symbols_of(dim)) if name in values)
    return DimError(
        f"{dim} is {size} here, but {reason}" + (f" with {used}" if used else ""),
        hint="give arrays whose sizes agree with the facts of the model",
    )
