"""The larger and the smaller one, of numbers of any type.

Of floats, what IEEE 754-2019 calls maximum and minimum: not-a-number wins over every number, and 0.0 is larger than
-0.0. NumPy and most processors leave open which of two zeros comes out. As it is settled here, the extreme of many
numbers is the same in whatever order they are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array


def lowest(dtype: np.dtype[Any]) -> Any:
    """What no element of that type is below."""
    if dtype.kind == "b":
        return False
    return -np.inf if DatumType.from_numpy(dtype).is_float() else int(ml_dtypes.iinfo(dtype).min)


def highest(dtype: np.dtype[Any]) -> Any:
    """What no element of that type is above."""
    if dtype.kind == "b":
        return True
    return np.inf if DatumType.from_numpy(dtype).is_float() else int(ml_dtypes.iinfo(dtype).max)


@frozen
class Extreme:
    """One of the two. ``compare``: what NumPy has, but for the sign of a zero.

    ``negative``: whether a zero that comes out is -0.0, from whether the elements are negative: of a largest one that
    is zero, all of them are; of a smallest one, any. ``nothing``: what changes nothing, for an element type.
    """

    compare: np.ufunc
    negative: np.ufunc
    nothing: Callable[[np.dtype[Any]], Any]

    def of(self, a: Array, b: Array) -> Array:
        """Element by element. NumPy has no type narrower than f32 in which it would be right: give it wider ones."""
        found = np.asarray(self.compare(a, b))
        if not _has_zeros(found):
            return found
        return _signed(found, self.negative(np.signbit(a), np.signbit(b)))

    def along(self, x: Array, axes: Sequence[int]) -> Array:
        """Over axes, which keep size 1."""
        axes = tuple(axes)
        found = np.asarray(self.compare.reduce(x, axis=axes, keepdims=True, initial=self.nothing(x.dtype)))
        if not _has_zeros(found):
            return found
        return _signed(found, self.negative.reduce(np.signbit(x), axis=axes, keepdims=True))

    def so_far(self, x: Array, axis: int) -> Array:
        """Along an axis, of the elements up to each one."""
        found = np.asarray(self.compare.accumulate(x, axis=axis))
        if not _has_zeros(found):
            return found
        return _signed(found, self.negative.accumulate(np.signbit(x), axis=axis))

    def scattered(self, x: Array, places: tuple[Array, ...], updates: Array) -> None:
        """Each of ``updates`` with the element of ``x`` at its place, in ``x`` itself."""
        negative = np.signbit(x) if x.dtype.kind == "f" else None
        self.compare.at(x, places, updates)
        if negative is not None and _has_zeros(x):
            self.negative.at(negative, places, np.signbit(updates))
            x[...] = _signed(x, negative)


def _has_zeros(found: Array) -> bool:
    """Whether there are zeros that have signs."""
    return found.dtype.kind == "f" and not np.all(found)


def _signed(found: Array, negative: Array) -> Array:
    """``found``, with these signs of its zeros."""
    return np.where(found == 0, np.where(negative, -0.0, 0.0), found).astype(found.dtype, copy=False)


LARGEST: Final = Extreme(np.maximum, np.logical_and, lowest)
SMALLEST: Final = Extreme(np.minimum, np.logical_or, highest)
