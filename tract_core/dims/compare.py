"""Compare sizes with three answers: yes, no, or ``None`` where it depends on a symbol or could not be decided."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import gcd, prod

from tract_core.dims.atoms import Atom, Factor, Kind
from tract_core.dims.intervals import at_least, at_most
from tract_core.dims.known import NOTHING, SIZE, Interval, KnownSizes
from tract_core.dims.tdim import Dim, TDim, symbol
from tract_core.dims.walk import substitute

_MAX_CASES = 64
"""Combinations of remainders that are looked at."""


def same_dim(a: Dim, b: Dim, known: KnownSizes = NOTHING) -> bool | None:
    """Whether ``a`` and ``b`` are always equal (yes), never equal (no), or neither is certain (``None``)."""
    if a == b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return False
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    low, high = at_least(difference, known), at_most(difference, known)
    if low == high == 0:
        return True
    if _excludes_zero(difference, low, high):
        return False
    return _is_zero_by_cases(difference, known)


def less_or_equal(a: Dim, b: Dim, known: KnownSizes = NOTHING) -> bool | None:
    """Whether ``a <= b``: always, never, or ``None``."""
    return not_negative(b - a, known)


def not_negative(dim: Dim, known: KnownSizes = NOTHING) -> bool | None:
    """Whether ``dim >= 0``: always, never, or ``None``."""
    low = at_least(dim, known)
    if low is not None and low >= 0:
        return True
    high = at_most(dim, known)
    return False if high is not None and high < 0 else None


def positive(dim: Dim, known: KnownSizes = NOTHING) -> bool | None:
    """Whether ``dim >= 1``: always, never, or ``None``."""
    return not_negative(dim - 1, known)


def _excludes_zero(dim: TDim, low: int | None, high: int | None) -> bool:
    if (low is not None and low > 0) or (high is not None and high < 0):
        return True
    return dim.constant % gcd(*dim.terms.values()) != 0


def _is_zero_by_cases(dim: TDim, known: KnownSizes) -> bool | None:
    """Look at every remainder that the divided symbols can have, for which the divisions come out even."""
    divisor, names = _divisions(dim)
    if divisor == 1 or divisor ** len(names) > _MAX_CASES:
        return None
    answer: bool | None = None
    for case in _remainders(names, divisor):
        found = _zero_in_case(dim, case, divisor, known)
        if found == "unknown" or answer is (found == "other"):
            return None
        if found != "impossible":
            answer = found == "zero"
    return answer


def _remainders(names: list[str], divisor: int) -> Iterator[dict[str, int]]:
    for case in product(range(divisor), repeat=len(names)):
        yield dict(zip(names, case, strict=True))


def _zero_in_case(dim: TDim, case: dict[str, int], divisor: int, known: KnownSizes) -> str:
    """``"zero"``, ``"other"`` (never zero), ``"unknown"``, or ``"impossible"`` where the case cannot occur."""
    intervals = dict(known.intervals)
    for name, remainder in case.items():
        low, high = _quotients(known.intervals.get(name, SIZE), divisor, remainder)
        if low is not None and high is not None and low > high:
            return "impossible"
        intervals[name] = low, high
    found = substitute(dim, {name: symbol(name) * divisor + remainder for name, remainder in case.items()})
    if isinstance(found, int):
        return "other" if found else "zero"
    within = KnownSizes(intervals)
    low, high = at_least(found, within), at_most(found, within)
    if low == high == 0:
        return "zero"
    return "other" if _excludes_zero(found, low, high) else "unknown"


def _quotients(values: Interval, divisor: int, remainder: int) -> Interval:
    """The ``q`` for which ``q * divisor + remainder`` lies in ``values``."""
    low, high = values
    return (
        None if low is None else -((remainder - low) // divisor),
        None if high is None else (high - remainder) // divisor,
    )


def _divisions(dim: TDim) -> tuple[int, list[str]]:
    """A number that all divisions in ``dim`` divide even when nested, and the symbols under them; 1 for none."""
    divisors: set[int] = set()
    names: set[str] = set()
    _collect_divisions(dim, divisors, names)
    return prod(divisors), sorted(names)


def _collect_divisions(dim: Dim, divisors: set[int], names: set[str]) -> None:
    for factor in _factors(dim):
        if isinstance(factor, Atom):
            if factor.kind is Kind.DIV and isinstance(factor.args[1], int):
                divisors.add(factor.args[1])
                names |= factor.symbols
            for arg in factor.args:
                _collect_divisions(arg, divisors, names)


def _factors(dim: Dim) -> Iterator[Factor]:
    if isinstance(dim, TDim):
        for term in dim.terms:
            yield from term
