"""Blocks of 32 elements with one scale, and in some formats an offset."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data.blocks.form import BlockFormat, Blocks, bits, halves, nibbles
from tract_core.data.stored import Array
from tract_core.errors import InputError

_TOO_LARGE: Final = 65520
"""From here on, f16 rounds to infinity."""


def encode_q4_0(array: Array) -> Blocks:
    """The nearest blocks to an array of f32 [rows, columns]. Raises InputError unless the columns are whole blocks.

    The scale is such that the element of largest magnitude becomes -8, the integer that has no counterpart. Raises
    InputError as well where that is no finite number in f16.
    """
    if array.ndim != 2 or array.shape[1] % Q4_0.length:
        listed = ",".join(map(str, array.shape))
        raise InputError(f"a tensor of shape [{listed}] is no rows of whole blocks of {Q4_0.length} elements")
    values = array.astype(np.float32).reshape(-1, Q4_0.length)
    largest = np.take_along_axis(values, np.abs(values).argmax(axis=1)[:, None], axis=1)
    scale = largest / np.float32(-8)
    if not (np.abs(scale) < _TOO_LARGE).all():
        raise InputError(f"a block with NaN, or numbers from {8 * _TOO_LARGE} on, has no finite scale")
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    codes = np.clip(np.trunc(values * inverse + np.float32(8.5)), 0, 15).astype(np.uint8)
    content = np.empty((len(values), Q4_0.size), np.uint8)
    content[:, :2] = scale.astype("<f2").view(np.uint8)
    content[:, 2:] = codes[:, :16] | codes[:, 16:] << 4
    return Blocks(Q4_0, (array.shape[0], array.shape[1]), content.reshape(-1))


def _decode_q4_0(blocks: Array) -> Array:
    return (nibbles(blocks[:, 2:]).astype(np.float32) - 8) * halves(blocks, 0)


def _decode_q4_1(blocks: Array) -> Array:
    return nibbles(blocks[:, 4:]).astype(np.float32) * halves(blocks, 0) + halves(blocks, 2)


def _decode_q5_0(blocks: Array) -> Array:
    return (_five_bits(blocks[:, 2:]).astype(np.float32) - 16) * halves(blocks, 0)


def _decode_q5_1(blocks: Array) -> Array:
    return _five_bits(blocks[:, 4:]).astype(np.float32) * halves(blocks, 0) + halves(blocks, 2)


def _five_bits(packed: Array) -> Array:
    """Four bytes with the highest bit of each of 32 integers, and 16 with the others."""
    return nibbles(packed[:, 4:]) | bits(packed[:, :4]) << 4


def _decode_q8_0(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32) * halves(blocks, 0)


def _decode_q8_1(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[:, 4:]).view(np.int8).astype(np.float32) * halves(blocks, 0)


Q4_0: Final = BlockFormat("q4_0", 32, 18, _decode_q4_0)
"""A scale in f16, and 32 integers of 4 bits, eight less than stored."""

Q4_1: Final = BlockFormat("q4_1", 32, 20, _decode_q4_1)
"""A scale and an offset in f16, and 32 integers of 4 bits."""

Q5_0: Final = BlockFormat("q5_0", 32, 22, _decode_q5_0)
"""A scale in f16, and 32 integers of 5 bits, 16 less than stored: their highest bits stand in front."""

Q5_1: Final = BlockFormat("q5_1", 32, 24, _decode_q5_1)
"""A scale and an offset in f16, and 32 integers of 5 bits: their highest bits stand in front."""

Q8_0: Final = BlockFormat("q8_0", 32, 34, _decode_q8_0)
"""A scale in f16, and 32 integers of 8 bits."""

Q8_1: Final = BlockFormat("q8_1", 32, 36, _decode_q8_1)
"""A scale and a sum in f16, and 32 integers of 8 bits. The sum serves products of integers, and says nothing new."""
