"""How small and how large a size can be.

Two methods, both sound and neither complete. ``bounds`` computes with intervals, one atom after the other. ``at_least``
goes further for a difference whose parts are related, such as ``S - S/2``: it replaces divisions, minima and maxima by
what they lie between, and adds in the facts that are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import itemgetter

from tract_core.dims.atoms import BOOLEAN, UNORDERED, Atom, Factor, Kind, Monomial
from tract_core.dims.known import NOTHING, SIZE, Interval, KnownSizes
from tract_core.dims.tdim import Dim, TDim, make_dim

_BUDGET = 96
"""Steps of one search: enough for sizes met in models, and an end for those made to keep it busy."""

_TRIED = 8
"""Known sums that are tried for one term of a size."""


def bounds(dim: Dim, symbol_bounds: Mapping[str, Interval] | None = None) -> Interval:
    """Smallest and largest value of ``dim``, where each symbol lies in its interval; ``None`` where it has no bound.

    Symbols that ``symbol_bounds`` does not name are 0 or more. The interval holds every value that ``dim`` takes, but
    may be too wide, as symbols that occur twice are taken apart: ``S - S*P``.
    """
    known = KnownSizes(dict(symbol_bounds)) if symbol_bounds else NOTHING
    return at_least(dim, known), at_most(dim, known)


def at_least(dim: Dim, known: KnownSizes = NOTHING, *, enough: int | None = None) -> int | None:
    """A number that ``dim`` never falls below, the best that was found, or ``None``.

    ``enough``: a number of which it need only be known that ``dim`` does not fall below it.
    """
    if isinstance(dim, int):
        return dim
    low = interval(dim, known)[0]
    if low is not None and enough is not None and low >= enough:
        return low
    if not known.lowest and not known.definitions and _is_linear(dim):
        return low
    if known is NOTHING:  # whose caches would live as long as the process
        return _Search(KnownSizes()).lowest(dim, ())
    if dim not in known.searched:
        known.searched[dim] = _Search(known).lowest(dim, ())
    return known.searched[dim]


def at_most(dim: Dim, known: KnownSizes = NOTHING) -> int | None:
    """A number that ``dim`` never exceeds, the best that was found, or ``None``."""
    lowest = at_least(-dim, known)
    return None if lowest is None else -lowest


def is_never_negative(dim: Dim, known: KnownSizes = NOTHING) -> bool:
    """Whether ``dim >= 0`` could be proved."""
    lowest = at_least(dim, known, enough=0)
    return lowest is not None and lowest >= 0


def interval(dim: Dim, known: KnownSizes = NOTHING) -> Interval:
    """The bounds of ``dim``, from those of its parts alone."""
    if isinstance(dim, int):
        return dim, dim
    low: int | None = dim.constant
    high: int | None = dim.constant
    for product, factor in dim.terms.items():
        smallest, largest = _product_interval(product, known)
        if factor < 0:
            smallest, largest = largest, smallest
        low = None if low is None or smallest is None else low + factor * smallest
        high = None if high is None or largest is None else high + factor * largest
        if low is None and high is None:
            break
    return low, high


def _product_interval(product: Monomial, known: KnownSizes) -> Interval:
    result = _factor_interval(product[0], known)
    for factor in product[1:]:
        result = _times(result, _factor_interval(factor, known))
    return result


def _factor_interval(factor: Factor, known: KnownSizes) -> Interval:
    if isinstance(factor, str):
        return known.intervals.get(factor, SIZE)
    found = known.cache.get(factor)
    if found is None:
        found = _INTERVALS[factor.kind]([interval(arg, known) for arg in factor.args])
        if known is not NOTHING:
            known.cache[factor] = found
    return found


def _times(a: Interval, b: Interval) -> Interval:
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
    if None in a or None in b:
        return _unbounded_times(a, b)
    corners = [x * y for x in a for y in b if x is not None and y is not None]
    return min(corners), max(corners)


def _unbounded_times(a: Interval, b: Interval) -> Interval:
    """Only the cases in which one factor keeps its sign leave a bound that anybody asks for."""
    signs = _sign(a) * _sign(b)
    if signs == 0:
        return None, None
    return (0, None) if signs > 0 else (None, 0)


def _sign(a: Interval) -> int:
    """1 where the values are 0 or more, -1 where they are 0 or less, 0 where both occur."""
    if a[0] is not None and a[0] >= 0:
        return 1
    return -1 if a[1] is not None and a[1] <= 0 else 0


def _div_interval(args: Sequence[Interval]) -> Interval:
    (low, high), (divisor, _) = args
    divisor = divisor or 1
    return None if low is None else low // divisor, None if high is None else high // divisor


def _smallest(values: Sequence[int | None]) -> int | None:
    """The smallest of lower bounds: ``None`` where one is missing."""
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(values) else None


def _largest(values: Sequence[int | None]) -> int | None:
    """The largest of upper bounds: ``None`` where one is missing."""
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def _min_interval(args: Sequence[Interval]) -> Interval:
    lows = [low for low, _ in args]
    return _smallest(lows), min((high for _, high in args if high is not None), default=None)


def _max_interval(args: Sequence[Interval]) -> Interval:
    highs = [high for _, high in args]
    return max((low for low, _ in args if low is not None), default=None), _largest(highs)


def _broadcast_interval(args: Sequence[Interval]) -> Interval:
    return _smallest([low for low, _ in args]), _largest([high for _, high in args])


def _ge_interval(args: Sequence[Interval]) -> Interval:
    ((low, high),) = args
    return int(low is not None and low >= 0), int(high is None or high >= 0)


def _eq_interval(args: Sequence[Interval]) -> Interval:
    ((low, high),) = args
    never = (low is not None and low > 0) or (high is not None and high < 0)
    return int(low == high == 0), int(not never)


_INTERVALS: dict[Kind, Callable[[Sequence[Interval]], Interval]] = {
    Kind.DIV: _div_interval,
    Kind.MIN: _min_interval,
    Kind.MAX: _max_interval,
    Kind.BROADCAST: _broadcast_interval,
    Kind.GE: _ge_interval,
    Kind.EQ: _eq_interval,
}


class _Search:
    """One search for a lower bound; holds what is left of its budget."""

    def __init__(self, known: KnownSizes) -> None:
        self.known = known
        self.budget = _BUDGET

    def lowest(self, dim: Dim, used: tuple[TDim, ...]) -> int | None:
        """The best lower bound of ``dim`` that was found. ``used``: known sums that are not to be used again."""
        if isinstance(dim, int):
            return dim
        best = _larger(interval(dim, self.known)[0], self._as_known(dim))
        for found in (self._without_an_atom, self._without_common_factor, self._with_a_sum, self._without_a_name):
            if self.budget > 0:
                self.budget -= 1
                best = _larger(best, found(dim, used))
        return best

    def _as_known(self, dim: TDim) -> int | None:
        """What is known of the very sum."""
        low = self.known.lowest.get(TDim(dim.terms, 0)) if self.known.lowest else None
        return None if low is None else low + dim.constant

    def _without_an_atom(self, dim: TDim, used: tuple[TDim, ...]) -> int | None:
        """Replace one atom that stands alone by what bounds it."""
        alone = [(atom, factor) for (atom, *more), factor in dim.terms.items() if not more and isinstance(atom, Atom)]
        atom, factor = min(alone, key=_urgency, default=(None, 0))
        if atom is None or atom.kind in BOOLEAN:
            return None
        others = without_term(dim, (atom,))
        replace = self._without_division if atom.kind is Kind.DIV else self._without_choice
        return replace(others, factor, atom, used)

    def _without_division(self, others: Dim, factor: int, atom: Atom, used: tuple[TDim, ...]) -> int | None:
        """``(x - n + 1) / n <= floor(x / n) <= x / n``"""
        numerator, divisor = atom.args
        if not isinstance(divisor, int):
            return None
        quotient = numerator if factor < 0 else numerator - (divisor - 1)
        return _ceil(self.lowest(others * divisor + quotient * factor, used), divisor)

    def _without_choice(self, others: Dim, factor: int, atom: Atom, used: tuple[TDim, ...]) -> int | None:
        """A minimum, maximum or broadcast is one of its arguments: the best or the worst case counts."""
        cases = [self.lowest(others + arg * factor, used) for arg in atom.args]
        if _is_best_case(atom, factor):
            return max((case for case in cases if case is not None), default=None)
        return _smallest(cases)

    def _without_common_factor(self, dim: TDim, used: tuple[TDim, ...]) -> int | None:
        """``x*a + x*b`` is 0 or more where both ``x`` and ``a + b`` are."""
        first = next(iter(dim.terms))
        if dim.constant:
            return None
        for common in first if len(dim.terms) > 1 else ():
            if all(common in product for product in dim.terms) and _sign(_factor_interval(common, self.known)) == 1:
                rest = self.lowest(_divide_by_factor(dim, common), used)
                return 0 if rest is not None and rest >= 0 else None
        return None

    def _with_a_sum(self, dim: TDim, used: tuple[TDim, ...]) -> int | None:
        """Subtract a multiple of a sum whose lowest value is known, such that one term goes away."""
        best: int | None = None
        for term, factor in sorted(dim.terms.items(), key=itemgetter(1)) if self.known.lowest else ():
            for total, low in islice(self.known.sums_with(term), _TRIED):
                share = total.terms[term]
                if share * factor > 0 and self.budget > 0 and total not in used:
                    less = dim * abs(share) - (total - low) * abs(factor)
                    best = _larger(best, _ceil(self.lowest(less, (*used, total)), abs(share)))
        return best

    def _without_a_name(self, dim: TDim, used: tuple[TDim, ...]) -> int | None:
        """Put the size that a symbol is the name of into its place."""
        for (name, *more), factor in dim.terms.items() if self.known.definitions else ():
            if not more and isinstance(name, str) and name in self.known.definitions:
                return self.lowest(without_term(dim, (name,)) + self.known.definitions[name] * factor, used)
        return None


def _urgency(term: tuple[Atom, int]) -> int:
    """Which atom to replace first: where every case counts, any choice made before would have to suit all of them."""
    atom, factor = term
    if atom.kind in UNORDERED:
        return 1 if _is_best_case(atom, factor) else 0
    return 2 if atom.kind is Kind.DIV else 3


def _is_best_case(atom: Atom, factor: int) -> bool:
    """Whether ``factor * atom`` is at least ``factor`` times each of its arguments."""
    return (atom.kind is Kind.MAX and factor > 0) or (atom.kind is Kind.MIN and factor < 0)


def without_term(dim: TDim, product: Monomial) -> Dim:
    """``dim`` less its term in ``product``."""
    return make_dim({other: factor for other, factor in dim.terms.items() if other != product}, dim.constant)


def _is_linear(dim: TDim) -> bool:
    return all(len(product) == 1 and isinstance(product[0], str) for product in dim.terms)


def _divide_by_factor(dim: TDim, common: Factor) -> Dim:
    terms: dict[Monomial, int] = {}
    constant = 0
    for product, factor in dim.terms.items():
        position = product.index(common)
        rest = product[:position] + product[position + 1 :]
        if rest:
            terms[rest] = factor
        else:
            constant = factor
    return make_dim(terms, constant)


def _larger(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b)


def _ceil(number: int | None, divisor: int) -> int | None:
    return None if number is None else -(-number // divisor)
