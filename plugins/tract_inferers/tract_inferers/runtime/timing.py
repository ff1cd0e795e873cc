"""How long a brain takes for so many rows: an estimate that follows changes, and what was measured."""

from __future__ import annotations

import threading
from collections import deque
from math import ceil
from typing import Final

_DECAY: Final = 0.9
"""What a measurement counts for when the next one comes."""

_PRIOR: Final = 1e-3
"""How much it counts, beside the spread of sizes, that the cost may be all per row."""

_STRANGE: Final = 4.0
"""A run that takes so many times what was expected says nothing yet."""

_WINDOW: Final = 512
"""Measurements of which the quantiles are."""


class Fit:
    """A line through measurements of sizes and times, ``fixed + per_row * rows``, both at least 0.

    Least squares, where each measurement counts 0.9 of what the next one does. Means and deviations from them are kept,
    and moved with each measurement, since sums of squares would lose the digits that matter. Where all sizes are about
    the same, the cost is taken to be all per row.
    """

    def __init__(self) -> None:
        self._weight = 0.0
        self._rows = self._seconds = 0.0  # the means
        self._spread = self._together = 0.0  # sums of squares of deviations of sizes, and of their products with times
        self.fixed = self.per_row = 0.0

    def add(self, rows: int, seconds: float) -> None:
        """One more measurement."""
        old = _DECAY * self._weight
        self._weight = old + 1
        off, late = rows - self._rows, seconds - self._seconds
        self._rows += off / self._weight
        self._seconds += late / self._weight
        self._spread = _DECAY * self._spread + old / self._weight * off * off
        self._together = _DECAY * self._together + old / self._weight * off * late
        self._solve()

    def _solve(self) -> None:
        prior = _PRIOR * self._rows**2
        slope = (self._together + prior * self._seconds / self._rows) / (self._spread + prior)
        if slope < 0:
            slope = 0.0
        elif slope * self._rows > self._seconds:  # the line that is best among those through the origin
            square = self._spread + self._weight * self._rows**2
            slope = (self._together + self._weight * self._rows * self._seconds) / square
            self.fixed, self.per_row = 0.0, max(slope, 0.0)
            return
        self.fixed, self.per_row = max(self._seconds - slope * self._rows, 0.0), slope

    def estimate(self, rows: int) -> float:
        """Seconds that so many rows should take."""
        return self.fixed + self.per_row * rows


class Timing:
    """What is known about the time that a brain takes. Many threads may use it.

    The first run is warm-up, and left out. A run that takes more than four times what was expected is left out of the
    estimate too, as plans are built and caches filled now and then; when the next one does so again, both are believed,
    and what was before is forgotten. Nothing measured is an estimate of 0.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fit = Fit()
        self._warm = self._measured = False
        self._strange: tuple[int, float] | None = None
        self._window: deque[float] = deque(maxlen=_WINDOW)

    def add(self, rows: int, seconds: float) -> None:
        """A run of so many rows took so many seconds."""
        with self._lock:
            if not self._warm:
                self._warm = True
                return
            if not self._measured:
                self._fit, self._measured = Fit(), True
                self._window.clear()
                self._fit.add(rows, seconds)
            else:
                self._follow(rows, seconds)
            self._window.append(seconds)

    def _follow(self, rows: int, seconds: float) -> None:
        strange, self._strange = self._strange, None
        if seconds > _STRANGE * self._fit.estimate(rows):
            if strange is None:
                self._strange = rows, seconds
                return
            self._fit = Fit()
            self._fit.add(*strange)
        self._fit.add(rows, seconds)

    def renew(self) -> None:
        """Another model is timed from now on. What is known of the old one serves until there is a measurement."""
        with self._lock:
            self._warm = self._measured = False
            self._strange = None

    def estimate(self, rows: int) -> float:
        """Seconds that so many rows should take."""
        with self._lock:
            return self._fit.estimate(rows)

    def line(self) -> tuple[float, float]:
        """The estimate's fixed part, and its part per row, in seconds."""
        with self._lock:
            return self._fit.fixed, self._fit.per_row

    def quantiles(self, *shares: float) -> list[float]:
        """The times that these shares of the last 512 measurements did not exceed, in seconds; 0 without any."""
        with self._lock:
            found = sorted(self._window)
        return [found[max(ceil(share * len(found)), 1) - 1] if found else 0.0 for share in shares]
