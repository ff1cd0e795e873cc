"""How many positions of each axis a pulse has: sizes that grow with the signal, taken apart into pulses."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from tract_core.dims import Dim, SymbolScope, evaluate, is_symbolic, substitute, symbol, symbols_of
from tract_core.dims.names import write_name
from tract_core.frozen import frozen
from tract_pulse.stream import CannotStream


@frozen
class Rate:
    """How much of the signal comes in one pulse. ``symbol``: the length of the signal. ``pulse``: how much it grows.

    A fraction where the length of the input grows by more than one with the symbol, and its pulse is no multiple of it.
    ``inputs``: the length and the pulse of each stream that comes from outside.
    """

    symbol: str
    pulse: Dim | Fraction
    inputs: tuple[tuple[Dim, Dim], ...] = ()

    @staticmethod
    def least(pulse: Dim) -> int:
        """The size of the shortest pulse, of which others, where a run decides, are multiples."""
        return evaluate(pulse, dict.fromkeys(symbols_of(pulse), 1))

    @property
    def period(self) -> int:
        """After how much of the signal the shortest pulses begin at the same places again."""
        return self.pulse.numerator if isinstance(self.pulse, Fraction) else self.least(self.pulse)

    def whole_pulses(self, count: int) -> int:
        """How many pulses are full before a signal of that length ends, if they are the shortest ones."""
        return min(evaluate(length, {self.symbol: count}) // self.least(pulse) for length, pulse in self.inputs)

    def growth(self, length: Dim) -> Dim:
        """How many positions one pulse adds to an axis of ``length``, once the signal is long enough for it.

        Raises CannotStream unless all pulses add as many, and some.
        """
        pulses, step = (
            (self.pulse.denominator, self.pulse.numerator) if isinstance(self.pulse, Fraction) else (1, self.pulse)
        )
        grown = substitute(length, {self.symbol: symbol(self.symbol) + step}) - length
        long = SymbolScope(sorted(symbols_of(grown) | {self.symbol}))
        long.add_assertion(f"{write_name(self.symbol)}>={SHORT}")
        grown = long.simplify(grown)
        if self.symbol in symbols_of(grown):
            raise CannotStream(
                f"a size of {length} does not grow by as much with each pulse of {self.pulse}",
                hint="take a pulse that is a multiple of what the size is divided by",
            )
        if grown == 0 and is_symbolic(length):
            raise CannotStream(
                f"a size of {length} stops growing with {self.symbol}", hint="let it grow, or be a number"
            )
        if pulses != 1 and (is_symbolic(grown) or int(grown) % pulses):
            raise CannotStream(f"a size of {length} does not grow by a whole number with each pulse")
        return grown if pulses == 1 else int(grown) // pulses

    @staticmethod
    def of_input(name: str, length: Dim, pulse: Dim) -> Rate:
        """The rate of an input of ``length`` of which a pulse has the size that ``length`` has for ``pulse``."""
        slope = substitute(length, {name: symbol(name) + 1}) - length
        size = substitute(length, {name: pulse})
        if is_symbolic(slope) or int(slope) < 1:
            raise CannotStream(f"the length {length} does not grow evenly with {name}")
        if slope == 1 and size == pulse:
            return Rate(name, pulse)
        if is_symbolic(size):
            if size != pulse * slope:
                raise CannotStream(f"a pulse of {pulse} is no number, which a length of {length} wants")
            return Rate(name, pulse)
        exact = Fraction(int(size), int(slope))
        return Rate(name, int(exact) if exact.denominator == 1 else exact)


SHORT: Final = 1024
"""Signals shorter than this are looked at one by one: what is true of longer ones need not be true of them."""


def eventual(scope: SymbolScope, rate: Rate, size: Dim, length: Dim) -> int | None:
    """What a size is for every signal for which ``length`` is not 0; ``None`` where that is no single number.

    As the beginning of ``x[2:]``, which is 2, but not for signals that are shorter than that.
    """
    if not is_symbolic(size):
        return int(size)
    if symbols_of(size) != frozenset([rate.symbol]):
        return None
    long = scope.copy()
    long.add_assertion(f"{write_name(rate.symbol)}>={SHORT}")
    found = long.simplify(size)
    if is_symbolic(found):
        return None
    for count in range(SHORT):
        values = {rate.symbol: count}
        if evaluate(size, values) != found and evaluate(length, values) > 0:
            return None
    return int(found)


def passed_before_known(rate: Rate, length: Dim, delay: int, pulse: Dim) -> int | None:
    """By how many positions a stream may have passed its end when the end of the signal becomes known, at most.

    That is before the pulse that it is in: all pulses that are whole before it have gone through. ``None`` where
    nothing tells. ``length``, ``delay``, ``pulse``: of the stream.
    """
    if not is_symbolic(length):
        return 0
    if symbols_of(length) - {rate.symbol}:
        return None
    period = rate.period
    late = [
        rate.whole_pulses(count) * rate.least(pulse) - delay - evaluate(length, {rate.symbol: count})
        for count in range(SHORT + 2 * period)
    ]
    grows_evenly = late[-period:] == late[-2 * period : -period]
    return max(0, *late) if grows_evenly else None


def is_whole(size: Dim, unit: int) -> bool:
    """Whether a size is a multiple of a number, whatever its symbols are."""
    return not is_symbolic(size - size // unit * unit) and size - size // unit * unit == 0
