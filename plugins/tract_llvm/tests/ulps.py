"""Numbers all over a float type, and how far functions of them are off: what tests and tools measure errors with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpmath import mp, mpf

BREAKS = [0.5, 1.0, 2**0.5, 0.5**0.5, 2**0.5 - 1, 2**0.5 + 1, 4.0, 6.0, 9.0103, 19.06, 2.0**20, 2.0**31, 2.0**60]
BREAKS += [88.72284, 87.33655, 103.97208, 89.41599, 709.782712893384, 708.396, 745.1332191, 710.4758600739439]
BREAKS += [np.pi / 4 * k for k in range(1, 20)] + [np.log(2) / 2 * k for k in range(1, 12)]

AROUND = 24
PER_EXPONENT = 500


def numbers(dtype: Any, per_exponent: int = PER_EXPONENT) -> np.ndarray:
    """Some of every exponent and sign, those at its ends among them; usual ones; what is around `BREAKS`; no numbers.

    Their count is a multiple of 64.
    """
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    digits, whole = info.nmant, np.dtype(f"u{np.dtype(dtype).itemsize}")
    exponents = np.arange(2 ** (info.bits - digits), dtype=whole)[:, None] << whole.type(digits)
    last = 2**digits - 1
    fractions = rng.integers(0, last, (len(exponents), per_exponent), whole, endpoint=True)
    ends = [0, 1, 2, last // 2, last // 2 + 1, last - 1, last]
    fractions[:, : len(ends)] = ends
    around = np.arange(-AROUND, AROUND + 1).astype(whole)
    breaks = (np.array(BREAKS, dtype).view(whole)[:, None] + around).ravel().view(dtype)
    usual = [rng.uniform(-end, end, per_exponent * 100).astype(dtype) for end in (1, 20, 1000)]
    found = np.concatenate([(exponents | fractions).ravel().view(dtype), *usual, breaks, -breaks])
    return np.concatenate([found, np.full(-found.size % 64, np.nan, dtype)])


def ulps(found: np.ndarray, wanted: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """How many units of the last place results are off; infinite where just one is a number, or a sign of 0 is wrong.

    ``wanted`` is the true result, rounded, and ``missing`` what that lacks. An infinity stands for the first number
    that is too large for the type.
    """
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.minimum(np.abs(wanted), info.max))
        large = np.isinf(found) ^ np.isinf(wanted)
        ends = [np.where(large & np.isinf(x), np.copysign(info.max, x), x) for x in (found, wanted)]
        off = np.abs((ends[0] - ends[1]) - np.where(np.isfinite(missing), missing, 0)) / unit + large
        off = np.where((found == wanted) & np.isinf(found), 0, off)
        off = np.where(np.isnan(found) & np.isnan(wanted), 0, off)
        wrong = (np.isnan(found) != np.isnan(wanted)) | (
            (wanted == 0) & (missing == 0) & (found == 0) & (np.signbit(found) != np.signbit(wanted))
        )
    return np.where(wrong, np.inf, off).astype(np.float64)


def in_parts(true: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Results of more digits as numbers of a type, and what these lack."""
    with np.errstate(all="ignore"):
        rounded = true.astype(dtype)
        return rounded, (true - rounded).astype(dtype)


def with_many_digits(function: Callable[..., Any], *operands: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Results in f64, by a function of mpmath, and what they lack; NaN where it gives no real number."""
    pairs = [_one(function, numbers) for numbers in zip(*operands, strict=True)]
    return np.array([high for high, _ in pairs]), np.array([low for _, low in pairs])


def _one(function: Callable[..., Any], numbers: tuple[float, ...]) -> tuple[float, float]:
    with mp.workprec(160):
        try:
            true = function(*map(mpf, map(float, numbers)))
        except (ValueError, ZeroDivisionError):
            return np.nan, 0.0
        if not isinstance(true, mpf):
            return np.nan, 0.0
        high = float(true)
        return high, float(true - mpf(high)) if np.isfinite(high) else 0.0
