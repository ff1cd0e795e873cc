"""The counter-based generator Philox4x64 with ten rounds, for many counters at once.

Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). The words are those of
`numpy.random.Philox`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[np.uint64]]

_ROUNDS: Final = 10
_MULTIPLIERS: Final = np.array([[0xD2E7470EE14C6C93], [0xCA5A826395121157]], np.uint64)
_BUMPS: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(2**32 - 1)
_HIGH_PARTS: Final = _MULTIPLIERS >> _HALF
_LOW_PARTS: Final = _MULTIPLIERS & _LOW


def keys_of_rounds(first: int, second: int) -> Array:
    """What the key ``(first, second)``, two numbers of 64 bits, is in each round: shape (rounds, 2, 1)."""
    key = (first, second)
    bumped = [[(word + turn * bump) % 2**64 for word, bump in zip(key, _BUMPS, strict=True)] for turn in range(_ROUNDS)]
    return np.array(bumped, np.uint64)[:, :, None]


def scramble(even: Array, odd: Array, keys: Array) -> tuple[Array, Array]:
    """Ten rounds, for n counters ``(c0, c1, c2, c3)``.

    ``even``: c0 and c2, shape (2, n), which is overwritten. ``odd``: c1 and c3. ``keys``: see `keys_of_rounds`. Returns
    the words 0 and 2, and the words 1 and 3, each of shape (2, n).
    """
    high, low, cross, mixed, spare = (np.empty_like(even) for _ in range(5))
    for key in keys:
        # high and low half of the product with the multiplier, from four products of 32 bits each
        np.bitwise_and(even, _LOW, out=low)
        np.right_shift(even, _HALF, out=high)
        np.multiply(low, _LOW_PARTS, out=cross)
        cross >>= _HALF
        low *= _HIGH_PARTS
        cross += low
        np.bitwise_and(cross, _LOW, out=low)
        np.multiply(high, _LOW_PARTS, out=mixed)
        low += mixed
        cross >>= _HALF
        low >>= _HALF
        high *= _HIGH_PARTS
        high += cross
        high += low
        np.multiply(even, _MULTIPLIERS, out=low)
        np.bitwise_xor(high[::-1], odd, out=even)
        even ^= key
        odd, low, spare = low[::-1], spare, low
    return even, odd
