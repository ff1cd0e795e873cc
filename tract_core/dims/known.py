"""What may be relied on besides that symbols are 0 or more: kept so that each question finds what it needs at once.

`tract_core.dims.theory` finds out what is known and keeps it here; `bounds`, `build` and `compare` use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from tract_core.dims.atoms import Atom, Factor, Monomial
from tract_core.dims.tdim import TDim

Interval: TypeAlias = tuple[int | None, int | None]
"""Smallest and largest value, both included; ``None`` where there is no such bound."""

SIZE: Final[Interval] = (0, None)
"""What every symbol is from the start: an integer that is 0 or more."""


class KnownSizes:
    """Bounds of symbols and of sums, and remainders.

    ``intervals``: of single symbols, by name; for the others `SIZE` holds. ``lowest``: for sums without constant, a
    number that the sum never falls below. ``remainders``: for symbols and operations, a number and what is left over
    when their value is divided by it. ``definitions``: what symbols stand for that are names of longer sizes.
    """

    __slots__ = ("_by_term", "cache", "definitions", "intervals", "lowest", "remainders", "searched")

    def __init__(self, intervals: dict[str, Interval] | None = None) -> None:
        self.intervals = {} if intervals is None else intervals
        self.lowest: dict[TDim, int] = {}
        self.remainders: dict[Factor, tuple[int, int]] = {}
        self.definitions: dict[str, TDim] = {}
        self.cache: dict[Atom, Interval] = {}
        """Intervals of operations that were computed before."""
        self.searched: dict[TDim, int | None] = {}
        """Lower bounds that were searched for before."""
        self._by_term: dict[Monomial, dict[TDim, None]] = {}

    def copy(self) -> KnownSizes:
        """The same knowledge, which changes on its own."""
        other = KnownSizes(dict(self.intervals))
        other.lowest, other.remainders = dict(self.lowest), dict(self.remainders)
        other.definitions = dict(self.definitions)
        other._by_term = {term: dict(sums) for term, sums in self._by_term.items()}
        return other

    def forget_found(self) -> None:
        """Forget what was computed from less than is known by now."""
        self.cache.clear()
        self.searched.clear()

    def add_sum(self, total: TDim, low: int) -> None:
        """``total``, which has no constant, never falls below ``low``."""
        self.lowest[total] = low
        for term in total.terms:
            self._by_term.setdefault(term, {})[total] = None

    def remove_sum(self, total: TDim) -> int:
        """Forget a sum; returns what it never falls below."""
        for term in total.terms:
            del self._by_term[term][total]
        return self.lowest.pop(total)

    def sums_with(self, term: Monomial) -> Iterator[tuple[TDim, int]]:
        """The sums in which a product occurs, each with what it never falls below."""
        return ((total, self.lowest[total]) for total in self._by_term.get(term, ()))


NOTHING: Final = KnownSizes()
"""Symbols are 0 or more, that is all; nobody writes to it."""


def only_factor(dim: TDim | int) -> Factor | None:
    """The symbol or the operation that a size consists of, if it is nothing else."""
    if isinstance(dim, int) or dim.constant or len(dim.terms) != 1:
        return None
    ((product, factor),) = dim.terms.items()
    return product[0] if factor == 1 and len(product) == 1 else None


def single_atom(dim: TDim | int) -> Atom | None:
    """The operation that a size consists of, if it is nothing else."""
    found = only_factor(dim)
    return found if isinstance(found, Atom) else None
