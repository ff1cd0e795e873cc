"""The counter-based generator Philox4x64 with ten rounds, for many counters at once.

Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). The words are those of
`numpy.random.Philox`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[np.uint64]]

BLOCKS: Final = 2048
"""The most counters at a time: what is computed with them stays in the second cache."""

_ROUNDS: Final = 10
_BUMPS: Final = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
# Arrays of one axis without gaps are what NumPy is fastest with: two halves, of which the middle 2 n elements have n of
# each multiplier.
_MULTIPLIERS: Final = np.array([0xD2E7470EE14C6C93, 0xCA5A826395121157], np.uint64).repeat(BLOCKS)
_HALF: Final = np.full(2 * BLOCKS, 32, np.uint64)
_LOW: Final = np.full(2 * BLOCKS, 2**32 - 1, np.uint64)
_HIGH_PARTS: Final = _MULTIPLIERS >> _HALF
_LOW_PARTS: Final = _MULTIPLIERS & _LOW


def keys_of_rounds(first: int, second: int) -> Array:
    """What the key ``(first, second)``, two numbers of 64 bits, is in each round: shape (rounds, 2, 1)."""
    key = (first, second)
    bumped = [[(word + turn * bump) % 2**64 for word, bump in zip(key, _BUMPS, strict=True)] for turn in range(_ROUNDS)]
    return np.array(bumped, np.uint64)[:, :, None]


def scramble(even: Array, odd: Array, keys: Array) -> tuple[Array, Array]:
    """Ten rounds, for n counters ``(c0, c1, c2, c3)``, at the most `BLOCKS`.

    ``even``: n of c0 and n of c2, shape (2 n,), ``odd``: c1 and c3; both are overwritten. ``keys``: see
    `keys_of_rounds`. Returns the words 0 and 2, and the words 1 and 3, each of shape (2 n,).
    """
    count = len(even) // 2
    both = slice(BLOCKS - count, BLOCKS + count)
    half, mask, multipliers = _HALF[both], _LOW[both], _MULTIPLIERS[both]
    high_parts, low_parts = _HIGH_PARTS[both], _LOW_PARTS[both]
    low, high, cross, product, spare = (np.empty_like(even) for _ in range(5))
    for first, second in keys:
        # high half of the product with the multiplier, from four products of 32 bits each
        np.bitwise_and(even, mask, out=low)
        np.right_shift(even, half, out=high)
        np.multiply(low, low_parts, out=cross)
        np.right_shift(cross, half, out=cross)
        np.multiply(low, high_parts, out=low)
        np.add(cross, low, out=cross)
        np.multiply(high, low_parts, out=product)
        np.bitwise_and(cross, mask, out=low)
        np.add(low, product, out=low)
        np.right_shift(cross, half, out=cross)
        np.right_shift(low, half, out=low)
        np.multiply(high, high_parts, out=high)
        np.add(high, cross, out=high)
        np.add(high, low, out=high)
        np.multiply(even, multipliers, out=product)  # the low half
        # the halves change places
        np.bitwise_xor(odd[:count], first, out=even[:count])
        np.bitwise_xor(odd[count:], second, out=even[count:])
        np.bitwise_xor(even[:count], high[count:], out=even[:count])
        np.bitwise_xor(even[count:], high[:count], out=even[count:])
        low[:count], low[count:] = product[count:], product[:count]
        odd, low, spare = low, spare, odd
    return even, odd
