"""Sizes of one symbol, known for every value that it can have.

Such a size is made of sums, floor divisions, minima and comparisons, so that it goes on evenly from some value of the
symbol on: it grows by as much whenever the symbol grows by a *period*. Its values up to there say all about it: whether
two sizes are always equal, or whether one is a number. `tract_core.dims.theory` answers the same for sizes of several
symbols, and gives up more often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import gcd, lcm
from typing import Any, Final, TypeAlias

import numpy as np

from tract_core.dims.atoms import Atom, Factor, Kind
from tract_core.dims.build import dim_max
from tract_core.dims.definitions import NO_DEFINITIONS, Definitions
from tract_core.dims.tdim import Dim, TDim, symbol
from tract_core.frozen import frozen

_Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_MOST: Final = 1 << 16
"""Values of one size that are looked at."""

_LARGEST: Final = 1 << 30
"""Of the numbers in a size, so that products and sums of them are exact."""


class IrregularError(Exception):
    """It was not found out how a size goes on."""


@frozen
class Progression:
    """``values``: where the symbol is 0, 1, 2 ...; from the last ``period`` of these on, it goes on evenly.

    ``steps``: for each remainder of the symbol by the period, by how much it grows when the symbol grows by a period.
    """

    values: _Numbers
    steps: _Numbers

    @property
    def period(self) -> int:
        """How much the symbol grows until the size goes on as before."""
        return len(self.steps)

    @property
    def start(self) -> int:
        """From which value of the symbol on that is true."""
        return len(self.values) - self.period

    @property
    def tail(self) -> _Numbers:
        """The values of the last period, each at the remainder of the symbol."""
        return np.roll(self.values[self.start :], self.start % self.period)

    def up_to(self, count: int) -> _Numbers:
        """The values for the first so many values of the symbol."""
        if count <= len(self.values):
            return self.values[:count]
        places = np.arange(len(self.values), count)
        periods = (places - self.start) // self.period
        more = self.values[places - periods * self.period] + periods * self.steps[places % self.period]
        return np.concatenate([self.values, more])

    def longer(self, start: int, period: int) -> Progression:
        """The same, with a longer beginning, and a period that is a multiple of its own. Raises IrregularError."""
        if start + period > _MOST:
            raise IrregularError
        times = period // self.period
        return Progression(self.up_to(start + period), np.tile(self.steps * times, times))

    def later(self, step: int) -> Progression:
        """The values that it has when the symbol is ``step`` more."""
        values = self.up_to(len(self.values) + step)[step:]
        return Progression(values, np.roll(self.steps, -step))

    def shortest(self) -> Progression:
        """The same, from as early on as it goes on evenly. Raises IrregularError for numbers that are too large."""
        if np.abs(self.values).max() > _LARGEST or np.abs(self.steps).max() > _LARGEST:
            raise IrregularError
        found = self._of_least_period()
        grown = found.values[found.period :] - found.values[: found.start]
        uneven = np.flatnonzero(grown != found.steps[np.arange(found.start) % found.period])
        start = int(uneven[-1]) + 1 if len(uneven) else 0
        return Progression(found.values[: start + found.period], found.steps)

    def _of_least_period(self) -> Progression:
        found = self
        for prime in _primes(self.period):
            shorter = found._of_period(found.period // prime)
            found = found if shorter is None else shorter
        return found

    def _of_period(self, period: int) -> Progression | None:
        """The same with a period that divides its own; ``None`` where it does not go on that evenly."""
        values = self.up_to(self.start + 2 * self.period)[self.start :]
        grown = np.roll((values[period:] - values[:-period])[: self.period], self.start % self.period)
        for found in (grown.reshape(-1, period), self.steps.reshape(-1, period)):
            if (found != found[0]).any():
                return None
        return Progression(self.values[: self.start + period], grown[:period])


def _primes(number: int) -> Iterator[int]:
    """The prime factors of a number, each as often as it divides it."""
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            yield divisor
            number //= divisor
        divisor += 1
    if number > 1:
        yield number


def number(value: int) -> Progression:
    """The same for all values of the symbol. Raises IrregularError for a number that is too large."""
    if abs(value) > _LARGEST:
        raise IrregularError
    return Progression(np.array([value], np.int64), np.zeros(1, np.int64))


ITSELF: Final = Progression(np.zeros(1, np.int64), np.ones(1, np.int64))
"""The symbol."""


def alike(*parts: Progression) -> list[Progression]:
    """All of them with one beginning and one period. Raises IrregularError where that is too long."""
    start, period = max(part.start for part in parts), lcm(*(part.period for part in parts))
    return [part.longer(start, period) for part in parts]


def plus(a: Progression, b: Progression, factor: int = 1) -> Progression:
    """``a + factor * b``"""
    a, b = alike(a, b)
    return Progression(a.values + factor * b.values, a.steps + factor * b.steps).shortest()


def times(a: Progression, b: Progression) -> Progression:
    """The product. Raises IrregularError where both grow at once."""
    a, b = alike(a, b)
    if ((a.steps != 0) & (b.steps != 0)).any():
        raise IrregularError
    return Progression(a.values * b.values, a.tail * b.steps + b.tail * a.steps).shortest()


def divided(a: Progression, divisor: int) -> Progression:
    """Divided by a positive number, rounded down."""
    a = a.longer(a.start, a.period * (divisor // gcd(divisor, *a.steps.tolist())))
    return Progression(a.values // divisor, a.steps // divisor).shortest()


def sign(a: Progression) -> Progression:
    """1 where it is above 0, -1 where it is below, else 0. Raises IrregularError where it takes too long to settle."""
    tail, steps = a.tail, a.steps
    periods = np.where(tail * steps <= 0, -tail // np.where(steps == 0, 1, steps) + 1, 0)
    a = a.longer(a.start + int(periods[steps != 0].max(initial=0)) * a.period, a.period)
    return Progression(np.sign(a.values), np.zeros_like(steps)).shortest()


def where(test: Progression, a: Progression, b: Progression) -> Progression:
    """``a`` where ``test``, which does not grow, is not 0; else ``b``"""
    test, a, b = alike(test, a, b)
    return Progression(np.where(test.values, a.values, b.values), np.where(test.tail, a.steps, b.steps)).shortest()


def is_zero(a: Progression) -> Progression:
    """1 where it is 0, else 0."""
    found = sign(a)
    return Progression(1 - np.abs(found.values), found.steps).shortest()


def is_not_negative(a: Progression) -> Progression:
    """1 where it is 0 or more, else 0."""
    found = sign(a)
    return Progression((found.values >= 0).astype(np.int64), found.steps).shortest()


def larger(a: Progression, b: Progression) -> Progression:
    """The larger one in each place."""
    return where(is_not_negative(plus(a, b, -1)), a, b)


def smaller(a: Progression, b: Progression) -> Progression:
    """The smaller one in each place."""
    return where(is_not_negative(plus(a, b, -1)), b, a)


def broadcast(a: Progression, b: Progression) -> Progression:
    """The other one where one is 1. Where both are different numbers, it may be anything."""
    return where(is_zero(plus(a, number(-1))), b, a)


class Progressions:
    """The sizes of one symbol, and of the names that stand for sizes of it."""

    def __init__(self, name: str, definitions: Definitions = NO_DEFINITIONS) -> None:
        self._definitions = definitions
        self._found: dict[Dim | Factor, Progression | None] = {name: ITSELF}

    def of(self, dim: Dim) -> Progression:
        """How a size goes on. Raises IrregularError for one of other symbols, and where that was not found out."""
        if not isinstance(dim, TDim):
            return number(dim)
        return self._once(dim, lambda: reduce(self._add, dim.terms.items(), number(dim.constant)))

    def _add(self, total: Progression, term: tuple[Sequence[Factor], int]) -> Progression:
        factors, many = term
        return plus(total, times(reduce(times, map(self._factor, factors)), number(many)))

    def _factor(self, factor: Factor) -> Progression:
        return self._once(factor, lambda: self._atom(factor) if isinstance(factor, Atom) else self._name(factor))

    def _once(self, key: Dim | Factor, find: Callable[[], Progression]) -> Progression:
        if key not in self._found:
            self._found[key] = None
            self._found[key] = find()
        found = self._found[key]
        if found is None:
            raise IrregularError
        return found

    def _name(self, name: str) -> Progression:
        dim = self._definitions.dim_of(name)
        if dim is None:
            raise IrregularError
        return self.of(dim)

    def _atom(self, atom: Atom) -> Progression:
        return _OPERATIONS[atom.kind]([self.of(arg) for arg in atom.args])


_OPERATIONS: Final[dict[Kind, Callable[[Sequence[Progression]], Progression]]] = {
    Kind.DIV: lambda args: divided(args[0], int(args[1].values[0])),
    Kind.MIN: lambda args: reduce(smaller, args),
    Kind.MAX: lambda args: reduce(larger, args),
    Kind.BROADCAST: lambda args: reduce(broadcast, args),
    Kind.GE: lambda args: is_not_negative(args[0]),
    Kind.EQ: lambda args: is_zero(args[0]),
}


def are_same(a: Progression, b: Progression, among: Progression) -> bool:
    """Whether two sizes are equal wherever ``among``, which does not grow, is not 0. Raises IrregularError."""
    a, b, among = alike(a, b, among)
    equal, steps = (a.values == b.values) | (among.values == 0), (a.steps == b.steps) | (among.tail == 0)
    return bool(equal.all() and steps.all())


def simplest(found: Progression, among: Progression, name: str) -> Dim | None:
    """A simple size of the symbol ``name`` that is the same wherever ``among`` is not 0; ``None`` where there is none.

    That is a number, or ``(a * S + b) / d``, or the larger one of such a size and of a number. Raises IrregularError.
    """
    found, among = alike(found, among)
    found, among = (one.longer(one.start + one.period, one.period) for one in (found, among))  # until it has grown
    places, going = np.flatnonzero(among.values), among.tail != 0
    if not going.any() or (found.steps[going] != found.steps[going][0]).any():
        return None
    values, step = found.values[places], int(found.steps[going][0])
    line = _line(places, values, step, found.period, name)
    if line is not None or step <= 0:
        return line
    least = int(values.min())
    line = _line(places[values > least], values[values > least], step, found.period, name)
    size = None if line is None else dim_max(least, line)
    return size if size is not None and are_same(found, Progressions(name).of(size), among) else None


def _line(places: _Numbers, values: _Numbers, step: int, period: int, name: str) -> Dim | None:
    """``(a * S + b) / d`` that has these values at these places, where ``a / d`` is ``step / period``."""
    common = gcd(step, period)
    rise, divisor = step // common, period // common
    lowest = values * divisor - rise * places
    if lowest.max() >= lowest.min() + divisor:
        return None
    return (symbol(name) * rise + int(lowest.max())) // divisor
