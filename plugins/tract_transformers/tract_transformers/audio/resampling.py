"""Sound at another rate, by a windowed sinc whose phases repeat (Crochiere and Rabiner, Multirate DSP, 1983).

What both rates can carry passes, up to 0.9 of the half of the lower one, with errors 90 dB below it. As far down is
what only the old one can carry.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tract_transformers.audio.waves import Samples

_CROSSINGS: Final = 64
"""How many times the sinc crosses zero on either side."""

_BETA: Final = 9.0
"""Of the window of Kaiser: how far below the passed frequencies the others lie."""

_EDGE: Final = 0.953
"""Where half passes, of the half of the lower rate: as far below it as frequencies take to go from all to nothing."""

_LARGEST: Final = 1 << 22
"""Phases times old samples of a turn, at most, for memory. Where phases do not repeat so soon, a near rate is taken,
less than a two-thousandth away; rates in common use are exact.
"""

_AT_ONCE: Final = 128
"""New samples that one product computes, at least."""

_BLOCK: Final = 1 << 22
"""Samples that are gathered for a product at once, for memory."""


def resampled(samples: Samples, rate: int, wanted: int) -> Samples:
    """As many seconds of ``samples``, which have ``rate`` a second, with ``wanted`` a second."""
    if rate == wanted or not len(samples):
        return samples
    ratio = Fraction(wanted, rate)
    most = isqrt(int(_LARGEST / max(1, 1 / ratio)))
    if ratio.numerator > most:
        ratio = 1 / Fraction(rate, wanted).limit_denominator(most)
    up, down = ratio.numerator, ratio.denominator
    times = ceil(_AT_ONCE / up)
    kernel, before = _kernel(up, down, times)
    count = ceil(len(samples) * ratio)
    rows, step = ceil(count / (up * times)), down * times
    padded = np.zeros(before + max((rows - 1) * step + len(kernel), len(samples)), np.float32)
    padded[before : before + len(samples)] = samples
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel))[::step][:rows]
    found = np.empty((rows, up * times), np.float32)
    block = max(_BLOCK // len(kernel), 1)
    for start in range(0, rows, block):
        np.matmul(windows[start : start + block], kernel, out=found[start : start + block])
    return found.reshape(-1)[:count]


@lru_cache(maxsize=4)
def _kernel(up: int, down: int, times: int) -> tuple[npt.NDArray[Any], int]:
    """What makes ``up * times`` new samples of old ones [old,new], and how many of these lie before the first one."""
    width = min(1.0, up / down) * _EDGE  # of what passes, where 1 is half of the old rate
    reach = ceil(_CROSSINGS / width)
    old = np.arange(-reach, down * times + reach + 1)
    away = old[:, None] - np.arange(up * times) * (down / up)
    shape = np.sinc(away * width) * width
    inside = np.clip(1 - (away / reach) ** 2, 0, None)
    return (shape * np.i0(_BETA * np.sqrt(inside)) / np.i0(_BETA) * (np.abs(away) <= reach)).astype(np.float32), reach
