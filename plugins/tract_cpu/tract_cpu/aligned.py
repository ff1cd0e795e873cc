"""Arrays that begin where a line of the cache does: a vector is read from one line, not from the ends of two.

NumPy's own begin in the middle of one: the system's allocator keeps sixteen bytes in front of what is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tract_core.plugins.keys import Array
from tract_cpu.native.objects import address_of

ALIGNMENT: Final = 64
"""Bytes: a line of the cache, and a vector of the widest kind."""


def aligned(make: Callable[[int, Any], Array], shape: Sequence[int], dtype: Any) -> Array:
    """An array that ``make`` fills, as `numpy.empty`, `numpy.zeros` or `numpy.ones` with bytes."""
    size = prod(shape) * np.dtype(dtype).itemsize
    whole = make(size + ALIGNMENT, np.uint8)
    begin = -address_of(whole) % ALIGNMENT
    found: Array = whole[begin : begin + size].view(dtype).reshape(shape)
    return found
