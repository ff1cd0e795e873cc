"""Blocks of 256 elements with one scale, each of which is -1, 0 or 1."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data.blocks.form import BlockFormat, halves
from tract_core.data.blocks.nested import LENGTH, crumbs
from tract_core.data.stored import Array

_RUNS: Final = ((0, 32, 5), (32, 48, 5), (48, 52, 4))
"""Where bytes of `TQ1_0` begin and end, and how many digits each of them has."""


def digits(packed: Array) -> Array:
    """Digits of numbers to the base of three, of bytes [n, 52] to [n, 256]: of each run all first ones, then the next.

    A byte is 256/243 of the number that five digits make, rounded up; of four digits, as if a zero followed. So the
    first digit is what three times the byte has above its eight bits, and these have the other digits in the same way.
    """
    found = list[Array]()
    for first, last, count in _RUNS:
        powers = np.array([3**digit for digit in range(count)], np.uint8)
        rest = packed[:, None, first:last] * powers[:, None]  # digits before lie above a byte, and are cut off
        found.append((rest.astype(np.uint16) * 3 >> 8).astype(np.uint8).reshape(len(packed), count * (last - first)))
    return np.concatenate(found, axis=1)


def _decode_tq1_0(blocks: Array) -> Array:
    return (digits(blocks[:, :52]).astype(np.float32) - 1) * halves(blocks, 52)


def _decode_tq2_0(blocks: Array) -> Array:
    return (crumbs(blocks[:, :64]).astype(np.float32) - 1) * halves(blocks, 64)


TQ1_0: Final = BlockFormat("tq1_0", LENGTH, 54, _decode_tq1_0)
"""Bytes of five digits to the base of three, one less than stored, and four of four digits; a scale in f16."""

TQ2_0: Final = BlockFormat("tq2_0", LENGTH, 66, _decode_tq2_0)
"""Integers of 2 bits, one less than stored, and a scale in f16. One may be 2, though nobody writes such files."""
