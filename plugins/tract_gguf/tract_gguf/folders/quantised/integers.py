"""Integers of a few bits that share words of 32 bits."""

from __future__ import annotations

from math import ceil
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.scratch import computed_of
from tract_core.plugins.keys import Array

WIDTHS: Final = (2, 3, 4, 8)
"""Bits that integers have."""

TYPES: Final = {2: DatumType.U2, 3: DatumType.U4, 4: DatumType.U4, 8: DatumType.U8}
"""Their types, by their bits; those of 3 bits are held in 4."""


def words_for(count: int, bits: int) -> int:
    """Words that so many integers take."""
    return ceil(count * bits / 32)


def unpacked(words: Array, bits: int, count: int) -> Array:
    """Integers [rows, count], each in a byte, of words [rows, `words_for` them].

    The lowest bits come first; an integer may go on in the next word.
    """
    each, period = (32 // bits, 1) if 32 % bits == 0 else (32, bits)
    held = words.view(np.uint32)
    if held.shape[1] % period:
        held = np.pad(held, ((0, 0), (0, -held.shape[1] % period)))
    made = np.empty((len(held), held.shape[1] // period * each), np.uint8)
    for number in range(each):
        word, low = divmod(number * bits, 32)
        found = held[:, word::period] >> np.uint32(low)
        if low + bits > 32:
            found |= held[:, word + 1 :: period] << np.uint32(32 - low)
        made[:, number::each] = found & np.uint32((1 << bits) - 1)
    return made[:, :count]


def in_type(codes: Array, bits: int, words: Array) -> Array:
    """Bytes as integers of so many bits, which ``words`` held: these need not stay in memory."""
    return computed_of([words], np.ascontiguousarray(codes)).view(TYPES[bits].numpy)
