"""What is left over when a size is divided by a number, where that is known whatever its symbols are."""

from __future__ import annotations

from math import gcd
from typing import Final

from tract_core.dims.atoms import UNORDERED, Atom, Factor, Kind, Monomial
from tract_core.dims.known import KnownSizes
from tract_core.dims.tdim import Dim, TDim, make_dim

_MOST_TRIED: Final = 256
"""Up to which number all of its divisors are looked at."""


def remainder(dim: Dim, divisor: int, known: KnownSizes) -> int | None:
    """``dim % divisor``, or ``None`` where that depends or was not found out."""
    if isinstance(dim, int):
        return dim % divisor
    total = dim.constant
    for term, factor in dim.terms.items():
        # Of the term, no more counts than what is left over by this part of the divisor.
        part = divisor // gcd(factor, divisor)
        found = _of_term(term, part, known)
        if found is None:
            return None
        total += factor * found
    return total % divisor


def without_whole_divisions(dim: Dim, known: KnownSizes) -> Dim:
    """``dim``, with ``x/m`` in the place of ``n*(x/(m*n))`` where ``n`` divides ``x/m``."""
    if isinstance(dim, int) or not known.remainders:
        return dim
    for term, factor in dim.terms.items():
        for place, atom in enumerate(term):
            undone = _undone(atom, factor, known) if isinstance(atom, Atom) and atom.kind is Kind.DIV else None
            if undone is not None:
                others, (quotient, by) = term[:place] + term[place + 1 :], undone
                times = make_dim({others: factor // by}, 0) if others else factor // by
                rest = make_dim({other: many for other, many in dim.terms.items() if other != term}, dim.constant)
                return without_whole_divisions(rest + quotient * times, known)
    return dim


def _undone(atom: Atom, factor: int, known: KnownSizes) -> tuple[Dim, int] | None:
    """For ``x/(m*n)``, multiplied by ``factor``: ``x/m`` and ``n``, which leaves nothing over, the largest there is."""
    numerator, divisor = atom.args
    assert isinstance(divisor, int)  # sizes are divided by numbers
    common = gcd(factor, divisor)
    for by in range(common, 1, -1) if common <= _MOST_TRIED else (common,):
        if common % by == 0:
            quotient = numerator // (divisor // by)
            if remainder(quotient, by, known) == 0:
                return quotient, by
    return None


def _of_term(term: Monomial, divisor: int, known: KnownSizes) -> int | None:
    """What is left over of a product: 0 where that is so of one factor."""
    if divisor == 1:
        return 0
    parts = [_of_factor(factor, divisor, known) for factor in term]
    if 0 in parts:
        return 0
    total = 1
    for part in parts:
        if part is None:
            return None
        total *= part
    return total % divisor


def _of_factor(factor: Factor, divisor: int, known: KnownSizes) -> int | None:
    by, left = known.remainders.get(factor, (1, 0))
    if by % divisor == 0:
        return left % divisor
    if isinstance(factor, str):
        return None
    if factor.kind is Kind.DIV:
        return _of_quotient(factor, divisor, known)
    if factor.kind in UNORDERED:
        found = {remainder(arg, divisor, known) for arg in factor.args}
        return found.pop() if len(found) == 1 else None
    return None


def _of_quotient(atom: Atom, divisor: int, known: KnownSizes) -> int | None:
    numerator, by = atom.args
    assert isinstance(by, int)  # sizes are divided by numbers
    found = remainder(numerator, by * divisor, known)
    return None if found is None else found // by


def isolated_remainder(dim: TDim, divisor: int = 0) -> tuple[Factor, int, int] | None:
    """A factor, a number, and what is left over when the factor's value is divided by it, where ``dim`` is 0.

    That is known of a factor that stands alone where a number divides all other terms. ``divisor``: the size that is 0
    is ``dim`` less a multiple of this.
    """
    for term, factor in dim.terms.items():
        others = gcd(divisor, *(many for other, many in dim.terms.items() if other != term))
        (only, *more) = term
        if not more and others > 1 and gcd(factor, others) == 1:
            return only, others, -dim.constant * pow(factor, -1, others) % others
    return None
