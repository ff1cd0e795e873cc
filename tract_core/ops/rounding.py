"""The ends of types, and numbers into integer types: rounded half to even and shifted, or cut off; saturated."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np

from tract_core.data import DatumType, DType
from tract_core.plugins.keys import Array


def limits(kind: DatumType) -> tuple[int, int]:
    """The least and the greatest value of an integer type, of any width."""
    found = ml_dtypes.iinfo(kind.numpy)
    return int(found.min), int(found.max)


def greatest(kind: DType) -> float:
    """The greatest number of a float type."""
    return float(cast("Any", ml_dtypes.finfo(kind.numpy)).max)


def round_into(x: Array, zero_point: Array, to: DatumType) -> Array:
    """``x`` (floats), rounded half to even, plus ``zero_point``, in the integer type ``to``; not-a-number becomes 0."""
    low, high = limits(to)
    steps = np.nan_to_num(np.rint(x), nan=0.0, posinf=np.inf, neginf=-np.inf) + zero_point
    return np.clip(steps, low, high).astype(np.int64).astype(to.numpy)


def cut_into(x: Array, to: DatumType) -> Array:
    """``x`` (floats) without their fractions, in the integer type ``to``; not-a-number becomes 0."""
    low, high = limits(to)
    carrier = np.uint64 if to is DatumType.U64 else np.int64 if to.itemsize > 1 else np.int16
    whole = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = (whole > low) & (whole < high + 1.0)
    ends = np.where(whole <= low, carrier(low), carrier(high))
    return np.where(inside, np.where(inside, whole, 0.0).astype(carrier), ends).astype(to.numpy)
