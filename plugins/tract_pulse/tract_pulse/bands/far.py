"""What is surely known of the elements of a tensor with two axes of time, far away from its diagonal.

Rows and columns are positions of the signal. The analysis looks at one side at a time: at the columns ahead of the
row, or at those behind it. It counts both in blocks of ``unit`` positions: of the two positions, the smaller one is
``unit * n + u``, the larger one ``unit * (n + t) + v``, with n not negative, t the *distance*, and u and v below
``unit``. What is known is known for each pair of u and v, as arrays with an axis for the place of the row in its block
and one for that of the column.

So a mask like ``row // 4 == column // 4`` is known exactly, with a unit of 4: n and n + t are the two chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tract_core.frozen import frozen
from tract_core.plugins.keys import Array

FILL: Final = -1e4
"""A mask that adds this or less, or puts it in the place of a score, takes the element out as -inf does."""

_NEARLY: Final = 1e-9
"""Coefficients are fractions of small integers, in f64: what is nearer to an integer than this is that integer."""

_OFF: Final = 1e-3


@frozen
class Far:
    """For distances from ``beyond`` on, an element is in ``per_block * n + per_distance * t + [low, high]``.

    Booleans are 0 and 1. Each field is an array of floats of rank 2, as above. A ``beyond`` below any distance means
    that it is true of all columns on this side.
    """

    per_block: Array
    per_distance: Array
    low: Array
    high: Array
    beyond: Array

    @staticmethod
    def between(low: Any, high: Any, beyond: Any = -np.inf, per_block: Any = 0.0, per_distance: Any = 0.0) -> Far:
        """From numbers, or arrays of rank 2."""
        fields = (per_block, per_distance, low, high, beyond)
        return Far(*(np.asarray(one, np.float64).reshape(np.shape(one) or (1, 1)) for one in fields))

    @property
    def is_flat(self) -> Array:
        """Where neither the row nor the column matters to the bounds."""
        return (self.per_block == 0) & (self.per_distance == 0)

    @property
    def is_known(self) -> Array:
        """Where it is one number."""
        return self.is_flat & (self.low == self.high)

    @property
    def is_bounded(self) -> Array:
        """Where there are two numbers between which it is, for a given row and column."""
        return np.isfinite(self.low) & np.isfinite(self.high)

    def is_all(self, value: float) -> Array:
        """Where it is one number, and that one."""
        return self.is_known & (self.low == value)

    def plus(self, other: Far) -> Far:
        """The sum, where both are numbers that are not infinite."""
        with np.errstate(invalid="ignore"):
            return Far.between(
                self.low + other.low,
                self.high + other.high,
                np.maximum(self.beyond, other.beyond),
                self.per_block + other.per_block,
                self.per_distance + other.per_distance,
            )

    def times(self, factor: Any) -> Far:
        """Times finite numbers: an array."""
        ends = [_product(end, factor) for end in (self.low, self.high)]
        return Far.between(
            np.minimum(*ends), np.maximum(*ends), self.beyond, self.per_block * factor, self.per_distance * factor
        )

    def at_least(self, bound: float, *, strictly: bool = False) -> Array:
        """From which distance on it is surely at least, or strictly above, a number; infinity for never."""
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = (bound - self.low) / self.per_distance
        nearest = np.floor(needed + _NEARLY) + 1 if strictly else np.ceil(needed - _NEARLY)
        flat = self.low > bound if strictly else self.low >= bound
        found = np.where(self.per_distance == 0, np.where(flat, -np.inf, np.inf), nearest)
        possible = (self.per_block >= 0) & (self.per_distance >= 0) & ~np.isnan(found)
        return np.where(possible, np.maximum(found, self.beyond), np.inf)

    def rounded(self, *, down: bool, up: bool) -> Far:
        """Rounded to integers, which may go down, or up, or either way.

        Where each block and each distance adds an integer, only the rest is rounded; elsewhere, numbers move by less
        than 1, and floats that an integer is meant by may be a little off.
        """
        exact = (self.per_block % 1 == 0) & (self.per_distance % 1 == 0)
        low = np.where(exact, np.floor(self.low) if down else np.ceil(self.low), self.low - (1 if down else _OFF))
        high = np.where(exact, np.ceil(self.high) if up else np.floor(self.high), self.high + (1 if up else _OFF))
        return Far.between(low, high, self.beyond, self.per_block, self.per_distance)


UNKNOWN: Final = Far.between(-np.inf, np.inf)
EITHER: Final = Far.between(0, 1)
"""A boolean of which nothing is known."""


def exactly(value: Any, beyond: Any = -np.inf) -> Far:
    """One number, or an array of them."""
    return Far.between(value, value, beyond)


def _product(a: Any, b: Any) -> Any:
    """Of bounds: nothing times infinity is nothing."""
    with np.errstate(invalid="ignore"):
        return np.where((np.asarray(a) == 0) | (np.asarray(b) == 0), 0.0, np.multiply(a, b))


def product(a: Far, b: Far) -> Far:
    """The bounds of a product of two numbers that depend on neither row nor column; elsewhere, nothing is known."""
    ends = [_product(one, other) for one in (a.low, a.high) for other in (b.low, b.high)]
    flat = a.is_flat & b.is_flat
    found = Far.between(np.minimum.reduce(ends), np.maximum.reduce(ends), np.maximum(a.beyond, b.beyond))
    return choose([(flat, found)], UNKNOWN)


def hull(a: Far, b: Far) -> Far:
    """What is true of both."""
    alike = (a.per_block == b.per_block) & (a.per_distance == b.per_distance)
    ends = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
    both = Far.between(*ends, np.maximum(a.beyond, b.beyond), a.per_block, a.per_distance)
    return choose([(alike, both)], UNKNOWN)


def choose(cases: Sequence[tuple[Array, Far]], otherwise: Far) -> Far:
    """In each place what the first case says whose condition holds there."""
    every = [*(far for _, far in cases), otherwise]
    conditions = [condition for condition, _ in cases]

    def chosen(read: Callable[[Far], Array]) -> Array:
        arrays = np.broadcast_arrays(*(read(far) for far in every), *conditions)
        return np.select(list(arrays[len(every) :]), list(arrays[: len(cases)]), arrays[len(cases)])

    return Far(
        chosen(lambda far: far.per_block),
        chosen(lambda far: far.per_distance),
        chosen(lambda far: far.low),
        chosen(lambda far: far.high),
        chosen(lambda far: far.beyond),
    )


def from_there(far: Far, beyond: Array) -> Far:
    """The same, of which only distances from ``beyond`` on are of interest."""
    return Far.between(far.low, far.high, np.maximum(far.beyond, beyond), far.per_block, far.per_distance)
