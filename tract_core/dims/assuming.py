"""Take an inequality apart into what is easy to use: bounds of symbols, and bounds of sums."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TypeAlias

from tract_core.dims.atoms import Atom, Kind
from tract_core.dims.intervals import at_most, interval, is_never_negative, without_term
from tract_core.dims.known import SIZE, Interval, KnownSizes
from tract_core.dims.tdim import Dim, TDim
from tract_core.dims.values import symbols_of

_PARTS = 64
"""Inequalities that are made of one that was assumed."""

_NARROWED = 64
"""Sums that are gone through again as what was assumed sharpens the bounds of their symbols."""

Mentions: TypeAlias = dict[str, dict[TDim | Atom, None]]
"""For each symbol, the sums with bounds and the operations with something in their place that mention it."""


class ContradictionError(Exception):
    """No values of the symbols satisfy what was assumed."""


def mention(mentions: Mentions, thing: TDim | Atom, names: Iterable[str]) -> None:
    """Note that something mentions these symbols."""
    for name in names:
        mentions.setdefault(name, {})[thing] = None


class Assuming:
    """Inequalities on their way into what is known.

    ``fixed``: the symbols for which one value is left; ``narrowed``: those whose bounds became sharper.
    """

    def __init__(self, known: KnownSizes, mentions: Mentions) -> None:
        self._known = known
        self._mentions = mentions
        self._parts = _PARTS
        self._narrowed = _NARROWED
        self.fixed: list[str] = []
        self.narrowed: dict[str, None] = {}
        self.learned = False
        """Whether anything is known that was not known before."""

    def add(self, dim: Dim) -> None:
        """Let ``dim`` be 0 or more. Raises ContradictionError where it was found out that it cannot be.

        An inequality that takes too many parts is used in part.
        """
        if isinstance(dim, int):
            if dim < 0:
                raise ContradictionError
            return
        if self._parts <= 0 or is_never_negative(dim, self._known):
            return
        self._parts -= 1
        highest = at_most(dim, self._known)
        if highest is not None and highest < 0:
            raise ContradictionError
        parts = _without_all_choices(dim) or _without_division(dim)
        if parts is None:
            self._bound(dim)
        else:
            for part in parts:
                self.add(part)

    def _bound(self, dim: TDim) -> None:
        """``g*x + c >= 0`` holds where ``x >= -floor(c / g)`` does."""
        common = gcd(*dim.terms.values())
        total = TDim({term: factor // common for term, factor in dim.terms.items()}, 0)
        low = -(dim.constant // common)
        self.learned = True
        if not _is_symbol(total):
            before = self._known.lowest.get(total)
            self._known.add_sum(total, low if before is None else max(before, low))
            mention(self._mentions, total, symbols_of(total))
        self._narrow_all(total, low)

    def _narrow_all(self, total: TDim, low: int) -> None:
        """Sharpen the bounds of symbols until ``total`` can be ``low``, and with them all other sums their lowest."""
        waiting = [(total, low)]
        while waiting and self._narrowed > 0:
            self._narrowed -= 1
            one, lowest = waiting.pop(0)
            for name in self._narrow(one - lowest):
                self._known.forget_found()
                self.narrowed[name] = None
                others = [thing for thing in self._mentions.get(name, ()) if thing in self._known.lowest]
                waiting.extend((thing, self._known.lowest[thing]) for thing in others if isinstance(thing, TDim))

    def _narrow(self, fact: Dim) -> list[str]:
        """Where ``a*x + rest >= 0``, ``rest`` cannot exceed its upper bound, so ``x`` has one too: all such ``x``."""
        if isinstance(fact, int):
            return []
        highs = {term: interval(TDim({term: factor}, 0), self._known)[1] for term, factor in fact.terms.items()}
        unbounded = [term for term, high in highs.items() if high is None]
        if len(unbounded) > 1:
            return []
        total = fact.constant + sum(high for high in highs.values() if high is not None)
        changed: list[str] = []
        for term in unbounded or fact.terms:
            name = term[0]
            if len(term) == 1 and isinstance(name, str):
                before = self._known.intervals.get(name, SIZE)
                after = _narrowed(before, fact.terms[term], total - (highs[term] or 0))
                if after != before:
                    self._known.intervals[name] = after
                    changed.append(name)
                    if after[0] == after[1]:
                        self.fixed.append(name)
        return changed


def _without_all_choices(dim: TDim) -> list[Dim] | None:
    """``a - max(b, c) >= 0`` says the same as ``a - b >= 0`` and ``a - c >= 0``; likewise for a minimum."""
    for (first, *more), factor in dim.terms.items():
        if isinstance(first, Atom) and not more and first.kind is (Kind.MAX if factor < 0 else Kind.MIN):
            others = without_term(dim, (first,))
            return [others + arg * factor for arg in first.args]
    return None


def _without_division(dim: TDim) -> list[Dim] | None:
    """``x/n >= m`` says the same as ``x >= n*m``, and ``x/n <= m`` the same as ``x <= n*m + n-1``."""
    if len(dim.terms) != 1:
        return None
    (((first, *more), factor),) = dim.terms.items()
    if not isinstance(first, Atom) or more or first.kind is not Kind.DIV:
        return None
    numerator, divisor = first.args
    assert isinstance(divisor, int)  # sizes are divided by numbers
    if factor > 0:
        return [numerator - divisor * -(dim.constant // factor)]
    return [divisor * (dim.constant // -factor) + divisor - 1 - numerator]


def _is_symbol(total: TDim) -> bool:
    """Whether the bounds of a single symbol say all that the bound of a sum says."""
    (first, *others) = total.terms
    return not others and len(first) == 1 and isinstance(first[0], str)


def _narrowed(values: Interval, factor: int, rest: int) -> Interval:
    """The part of ``values`` for which ``factor * value + rest >= 0``."""
    low, high = values
    if factor > 0:
        low = -(rest // factor) if low is None else max(low, -(rest // factor))
    else:
        limit = rest // -factor
        high = limit if high is None else min(high, limit)
    if low is not None and high is not None and high < low:
        raise ContradictionError
    return low, high
