"""From counts of what a tensor held to the range that its bytes are to cover.

Each method takes a histogram and gives the smallest and the largest number that are kept; what is beyond is cut off.
What occurred bounds all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tract_core.errors import InputError, meant
from tract_core.plugins.keys import Array
from tract_quantize.calibration.histogram import BINS, Histogram

Ends = tuple[float, float]
Method = Callable[[Histogram], Ends]

LEVELS: Final = 256
"""Of bytes, which `entropy` compares with: half of them for magnitudes of two signs, all for those of one."""

ALIKE: Final = 1.5
"""Of ends whose divergences differ by no more than this factor, `entropy` takes the widest."""

PEAK: Final = 4.0
"""So many times as often as its neighbours a number may occur. What blank paper becomes occurs more often, and would
say more about the divergence than all the rest."""

_CANDIDATES: Final = np.linspace(0.2, 1.0, 81)
"""Parts of the range that `mse` tries."""


def min_max(counts: Histogram) -> Ends:
    """All that occurred."""
    return counts.low, counts.high


def percentile(counts: Histogram, percent: float) -> Ends:
    """So many in a hundred of the elements; of the rest, as many are cut off above as below."""
    total = _count(counts)
    outside = total * (1 - percent / 100) / 2
    ends = [_beyond(one, outside) * counts.limit / BINS for one in (counts.negative, counts.positive)]
    return _within(counts, ends[0], ends[1])


def entropy(counts: Histogram) -> Ends:
    """The magnitude up to which the distribution loses the least information in bytes (Migacz, GTC 2017)."""
    both = _without_peaks((counts.negative + counts.positive).astype(np.float64))
    levels = LEVELS // 2 if counts.negative.any() and counts.positive.any() else LEVELS
    last = int(np.flatnonzero(both)[-1]) + 1
    step = max(1, last // 256)
    ends = [*range(levels, last, step), last]
    losses = [_divergence(both[:last], end, levels) for end in ends]
    widest = max(end for end, loss in zip(ends, losses, strict=True) if loss <= ALIKE * min(losses))
    reach = widest * counts.limit / BINS
    return _within(counts, reach, reach)


def mse(counts: Histogram) -> Ends:
    """The part of the range with the smallest mean square of what rounding and cutting off change."""
    centres = (np.arange(BINS) + 0.5) * counts.limit / BINS
    low, high = -min(counts.low, 0.0), max(counts.high, 0.0)
    losses = [_squares(counts, centres, low * part, high * part) for part in _CANDIDATES]
    part = float(_CANDIDATES[int(np.argmin(losses))])
    return _within(counts, low * part, high * part)


def _count(counts: Histogram) -> int:
    """Elements that are not 0. Those that are cannot be cut off."""
    return int(counts.negative.sum() + counts.positive.sum())


def _beyond(counts: Array, outside: float) -> int:
    """Bins that are kept, from 0 on, where so many elements beyond them may be lost."""
    behind = np.cumsum(counts[::-1])[::-1]
    kept = np.flatnonzero(behind > outside)
    return int(kept[-1]) + 1 if len(kept) else 0


def _within(counts: Histogram, below: float, above: float) -> Ends:
    """From ``-below`` to ``above``, as far as anything occurred there."""
    return max(counts.low, -below), min(counts.high, above)


def _without_peaks(counts: Array) -> Array:
    """Counts, each of them bounded by those of the two bins on either side."""
    padded = np.pad(counts, 2)
    beside = np.max([padded[shift : shift + len(counts)] for shift in (0, 1, 3, 4)], axis=0)
    return np.where(beside > 0, np.minimum(counts, PEAK * beside), counts)


def _divergence(counts: Array, end: int, levels: int) -> float:
    """The Kullback-Leibler divergence of what so many levels of ``end`` bins tell from the counts, cut off there."""
    kept = counts[:end].copy()
    kept[-1] += counts[end:].sum()
    edges = np.linspace(0, end, levels + 1).astype(np.int64)[:-1]
    taken = kept > 0
    sums = np.add.reduceat(counts[:end], edges)
    several = np.maximum(np.add.reduceat(taken.astype(np.float64), edges), 1)
    level = np.searchsorted(edges, np.arange(end), side="right") - 1
    told = np.where(taken, (sums / several)[level], 0.0)
    if not told.sum():
        return np.inf
    p, q = kept[taken] / kept.sum(), np.maximum(told[taken] / told.sum(), 1e-12)
    return float((p * np.log(p / q)).sum())


def _squares(counts: Histogram, centres: Array, below: float, above: float) -> float:
    """The sum of squares of what bytes from ``-below`` to ``above`` lose."""
    step = (below + above) / 255
    total = 0.0
    for magnitudes, end in ((counts.negative, below), (counts.positive, above)):
        lost = np.where(centres > end, (centres - end) ** 2, step**2 / 12)
        total += float((magnitudes * lost).sum())
    return total


_METHODS: Final[Mapping[str, Method]] = {"minmax": min_max, "entropy": entropy, "mse": mse}

METHODS: Final = ("minmax", "percentile", "entropy", "mse")
"""The names that `method_for` knows."""


def method_for(name: str, percent: float) -> Method:
    """The method of a name. Raises InputError for one that there is not, and for a percentage that is none."""
    if name not in METHODS:
        hint = f"there are {', '.join(METHODS)}" + "".join(f"; did you mean {one!r}?" for one in meant(name, METHODS))
        raise InputError(f"there is no method of calibration {name!r}", hint=hint)
    if name != "percentile":
        return _METHODS[name]
    if not 50 < percent <= 100:
        raise InputError(f"a percentile of {percent:g} makes no sense", hint="99.999 is usual, 100 keeps everything")
    return lambda counts: percentile(counts, percent)
