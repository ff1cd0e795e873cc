"""Numbers into integer types: rounded half to even, shifted, and saturated."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tract_core.data import DatumType
from tract_core.plugins.keys import Array


def limits(kind: DatumType) -> tuple[int, int]:
    """The least and the greatest value of an integer type, of any width."""
    found = ml_dtypes.iinfo(kind.numpy)
    return int(found.min), int(found.max)


def round_into(x: Array, zero_point: Array, to: DatumType) -> Array:
    """``x`` (floats), rounded half to even, plus ``zero_point``, in the integer type ``to``; not-a-number becomes 0."""
    low, high = limits(to)
    steps = np.nan_to_num(np.rint(x), nan=0.0, posinf=np.inf, neginf=-np.inf) + zero_point
    return np.clip(steps, low, high).astype(np.int64).astype(to.numpy)
