"""How many positions of each axis a pulse has: sizes that grow with the signal, taken apart into pulses."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from math import gcd
from typing import Final

from tract_core.dims import Dim, SymbolScope, TDim, dim_min, evaluate, is_symbolic, substitute, symbol, symbols_of
from tract_core.dims.names import write_name
from tract_core.frozen import frozen
from tract_pulse.pulsing.lengths import Lengths
from tract_pulse.stream import CannotStream


@frozen
class Rate:
    """How much of the signal comes in one pulse. ``symbol``: the length of the signal. ``pulse``: how much it grows.

    A fraction where the length of the input grows by more than one with the symbol, and its pulse is no multiple of it.
    ``lengths``: the sizes of the model. ``inputs``: the length and the pulse of each stream that comes from outside.
    """

    symbol: str
    pulse: Dim | Fraction
    lengths: Lengths = field(compare=False)
    inputs: tuple[tuple[Dim, Dim], ...] = ()

    @staticmethod
    def least(pulse: Dim) -> int:
        """The size of the shortest pulse, of which others, where a run decides, are multiples."""
        return evaluate(pulse, dict.fromkeys(symbols_of(pulse), 1))

    @property
    def unit(self) -> int:
        """Of how much of the signal every pulse is a multiple."""
        if isinstance(self.pulse, TDim):
            return gcd(self.pulse.constant, *self.pulse.terms.values())
        return self.pulse if isinstance(self.pulse, int) else self.pulse.numerator

    def growth(self, length: Dim) -> Dim:
        """How many positions one pulse adds to an axis of ``length``, once the signal is long enough for it.

        Raises CannotStream unless all pulses add as many, and some.
        """
        known = self.lengths.knows(length)
        grown = self.lengths.growth(length, self.unit) if known else self._growth_of_long(length)
        if grown is None:
            raise CannotStream(
                f"a size of {length} does not grow by as much with each pulse of {self.pulse}",
                hint="take a pulse that is a multiple of what the size is divided by",
            )
        if grown == 0 and is_symbolic(length):
            raise CannotStream(
                f"a size of {length} stops growing with {self.symbol}", hint="let it grow, or be a number"
            )
        if not isinstance(self.pulse, Fraction):
            return grown * (self.pulse // self.unit)
        if is_symbolic(grown) or int(grown) % self.pulse.denominator:
            raise CannotStream(f"a size of {length} does not grow by a whole number with each pulse")
        return int(grown) // self.pulse.denominator

    def _growth_of_long(self, length: Dim) -> Dim | None:
        """By how much a size of other symbols, too, grows with a long signal that is `unit` longer."""
        grown = substitute(length, {self.symbol: symbol(self.symbol) + self.unit}) - length
        long = SymbolScope(sorted(symbols_of(grown) | {self.symbol}))
        long.add_assertion(f"{write_name(self.symbol)}>={_LONG}")
        grown = long.simplify(grown)
        return None if self.symbol in symbols_of(grown) else grown

    def passed_before_known(self, length: Dim, delay: int, pulse: Dim) -> int | None:
        """By how many positions a stream may have passed its end when the end of the signal becomes known, at most.

        That is before the pulse that it is in: all pulses that are whole before it have gone through. ``None`` where
        nothing tells. ``length``, ``delay``, ``pulse``: of the stream.
        """
        if not is_symbolic(length):
            return 0
        whole_pulses = dim_min(*(source // self.least(size) for source, size in self.inputs))
        highest = self.lengths.highest(whole_pulses * self.least(pulse) - delay - length)
        return None if highest is None else max(0, highest)


def rate_of_input(lengths: Lengths, length: Dim, pulse: Dim) -> Rate:
    """The rate of an input of ``length`` of which a pulse has the size that ``length`` has for ``pulse``."""
    name = lengths.symbol
    slope = substitute(length, {name: symbol(name) + 1}) - length
    size = substitute(length, {name: pulse})
    if is_symbolic(slope) or int(slope) < 1:
        raise CannotStream(f"the length {length} does not grow evenly with {name}")
    if slope == 1 and size == pulse:
        return Rate(name, pulse, lengths)
    if is_symbolic(size):
        if size != pulse * slope:
            raise CannotStream(f"a pulse of {pulse} is no number, which a length of {length} wants")
        return Rate(name, pulse, lengths)
    exact = Fraction(int(size), int(slope))
    return Rate(name, int(exact) if exact.denominator == 1 else exact, lengths)


_LONG: Final = 1024
"""A signal as long as this is long enough for sizes to grow as they do from there on."""


def is_whole(size: Dim, unit: int) -> bool:
    """Whether a size is a multiple of a number, whatever its symbols are."""
    return not is_symbolic(size - size // unit * unit) and size - size // unit * unit == 0
