"""Axes of plots: where a value stands, and which values are written beside."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

from tract_core.frozen import frozen

WIDE: Final = 8.0
"""From which ratio of the largest and the smallest value on an axis is logarithmic."""

MARGIN: Final = 0.04
"""What is left free at both ends, as a share of the axis."""


@frozen
class PlotAxis:
    """From ``low`` to ``high``, logarithmic or not. ``log``: which of the two."""

    low: float
    high: float
    log: bool

    @staticmethod
    def over(values: Sequence[float], *, from_zero: bool = False) -> PlotAxis:
        """An axis with all these values: logarithmic where they differ much, else with 0 if that is wished."""
        low, high = min(values), max(values)
        if low > 0 and high / low >= WIDE:
            margin = (high / low) ** MARGIN
            return PlotAxis(low / margin, high * margin, log=True)
        low = 0.0 if from_zero else low
        margin = MARGIN * (high - low) or 1.0
        return PlotAxis(low if from_zero else low - margin, high + margin, log=False)

    def share(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        if self.log:
            return log10(value / self.low) / log10(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Round values on the axis, ``most`` at the most, at least two wherever there can be."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1) if self.log else range(0)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [
                one for power in powers for digit in digits if self.low <= (one := digit * 10.0**power) <= self.high
            ]
            if 2 <= len(found) <= most:
                return found
        span = (self.high - self.low) / most
        step = next(one for digit in (1, 2, 5, 10, 20) if (one := digit * 10.0 ** floor(log10(span))) >= span)
        first, last = ceil(self.low / step), floor(self.high / step)
        return [place * step for place in range(first, last + 1) if place or not self.log]


def written(value: float) -> str:
    """A value beside an axis."""
    return f"{value:.6g}"
