"""Blocks of 256 elements in parts of 16 or 32, whose own scales are small integers times a scale of the block.

ggml calls them K formats. Integers of few bits lie in planes: a byte holds those of elements that are 32 apart.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data.blocks.form import BlockFormat, bits, halves, nibbles
from tract_core.data.stored import Array

LENGTH: Final = 256


def crumbs(packed: Array) -> Array:
    """Integers of 2 bits, of bytes [n, 64] to [n, 256]: of each 32 bytes the lowest two bits, then the next."""
    planes = packed.reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None]
    return (planes & 3).reshape(-1, LENGTH)


def _high_bits(packed: Array) -> Array:
    """The highest bits of 256 integers in 32 bytes: bit ``k`` of each is that of the ``k``-th 32 integers."""
    return bits(packed).reshape(-1, 32, 8).swapaxes(1, 2).reshape(-1, LENGTH)


def _pairs_of_32(packed: Array) -> Array:
    """Integers of 4 bits, of bytes [n, 128]: of each 32 bytes the low ones, then the high ones."""
    return nibbles(packed.reshape(-1, 4, 32)).reshape(-1, LENGTH)


def in_parts(numbers: Array, scales: Array, offsets: Array | None = None) -> Array:
    """Integers [n, 256] times the scale of their part [n, parts], less its offset, in f32 [n, 256]."""
    parts = numbers.astype(np.float32).reshape(*scales.shape, LENGTH // scales.shape[1]) * scales[:, :, None]
    return (parts if offsets is None else parts - offsets[:, :, None]).reshape(-1, LENGTH)


def _decode_q2_k(blocks: Array) -> Array:
    codes = blocks[:, :16]
    scales = halves(blocks, 80) * (codes & 15).astype(np.float32)
    return in_parts(crumbs(blocks[:, 16:80]), scales, halves(blocks, 82) * (codes >> 4).astype(np.float32))


def _decode_q3_k(blocks: Array) -> Array:
    codes = nibbles(blocks[:, 96:104]) | _crumbs_of_4(blocks[:, 104:108]) << 4
    scales = halves(blocks, 108) * (codes.astype(np.float32) - 32)
    numbers = (crumbs(blocks[:, 32:96]) | _high_bits(blocks[:, :32]) << 2).astype(np.float32) - 4
    return in_parts(numbers, scales)


def _crumbs_of_4(packed: Array) -> Array:
    """The two highest bits of 16 scales in four bytes: the lowest of each byte, then the next."""
    return (packed[:, None] >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3).reshape(-1, 16)


def _decode_q4_k(blocks: Array) -> Array:
    return in_parts(_pairs_of_32(blocks[:, 16:]), *_scales_and_offsets(blocks))


def _decode_q5_k(blocks: Array) -> Array:
    numbers = _pairs_of_32(blocks[:, 48:]) | _high_bits(blocks[:, 16:48]) << 4
    return in_parts(numbers, *_scales_and_offsets(blocks))


def _scales_and_offsets(blocks: Array) -> tuple[Array, Array]:
    """Of 8 parts, in 12 bytes of 6 bits each behind the two of the block.

    The first four have bytes of their own. The last four have their low bits in the last four bytes, and their high
    ones above those of the first four.
    """
    first, second, low = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate((first & 63, low & 15 | first >> 6 << 4), axis=1)
    offsets = np.concatenate((second & 63, low >> 4 | second >> 6 << 4), axis=1)
    return halves(blocks, 0) * scales.astype(np.float32), halves(blocks, 2) * offsets.astype(np.float32)


def _decode_q6_k(blocks: Array) -> Array:
    low = nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, LENGTH)
    numbers = (low | crumbs(blocks[:, 128:192]) << 4).astype(np.float32) - 32
    codes = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    return in_parts(numbers, halves(blocks, 208) * codes.astype(np.float32))


Q2_K: Final = BlockFormat("q2_k", LENGTH, 84, _decode_q2_k)
"""A byte for each 16 elements, with 4 bits of a scale and of an offset; integers of 2 bits; both scales in f16."""

Q3_K: Final = BlockFormat("q3_k", LENGTH, 110, _decode_q3_k)
"""Highest bits, lower bits, scales of 6 bits of each 16 elements, a scale in f16; integers are 4 less than stored."""

Q4_K: Final = BlockFormat("q4_k", LENGTH, 144, _decode_q4_k)
"""Scales in f16 of scales and of offsets; those of each 32 elements in 6 bits; integers of 4 bits."""

Q5_K: Final = BlockFormat("q5_k", LENGTH, 176, _decode_q5_k)
"""As `Q4_K`, with highest bits in front of the lower ones of integers of 5 bits."""

Q6_K: Final = BlockFormat("q6_k", LENGTH, 210, _decode_q6_k)
"""Lower and higher bits of integers, 32 less than stored; scales of 8 bits of each 16 elements; a scale in f16."""
