"""How often which magnitudes occur in a tensor, in bounded memory, whatever comes."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.plugins.keys import Array

BINS: Final = 4096
"""Of each sign. Between half of them and all of them are used."""


class Histogram:
    """Counts of the elements of a tensor, over many turns.

    ``low``, ``high``: the smallest and the largest element so far. ``negative``, ``positive``: counts of magnitudes up
    to ``limit``, in `BINS` bins of the same width; zeros are in neither. ``limit`` is a power of two: where something
    larger comes, two neighbours become one until it fits.
    """

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf
        self.limit = 0.0
        self.negative, self.positive = (np.zeros(BINS, np.int64) for _ in range(2))

    def add(self, array: Array) -> None:
        """Count finite floats."""
        if not array.size:
            return
        values = array.reshape(-1).astype(np.float32, copy=False)
        low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._reach(max(-low, high))
        if self.limit:
            self.positive += self._counted(values[values > 0])
            self.negative += self._counted(-values[values < 0])

    def _reach(self, magnitude: float) -> None:
        """Let magnitudes up to this one have bins."""
        if not self.limit and magnitude > 0:
            self.limit = float(2.0 ** np.ceil(np.log2(magnitude)))
        while self.limit < magnitude:
            self.limit *= 2
            self.negative, self.positive = _halved(self.negative), _halved(self.positive)

    def _counted(self, magnitudes: Array) -> Array:
        places = (magnitudes.astype(np.float64) * (BINS / self.limit)).astype(np.int64)
        return np.bincount(np.minimum(places, BINS - 1), minlength=BINS)


def _halved(counts: Array) -> Array:
    """Two neighbours as one, and the rest empty."""
    return np.concatenate([counts.reshape(-1, 2).sum(axis=1), np.zeros(BINS // 2, np.int64)])
