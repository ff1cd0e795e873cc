"""Blocks of 256 elements in groups of 8 or 4: a code stands for all numbers of a group, by a row of a table.

ggml calls the formats IQ1, IQ2 and IQ3. Signs are apart where the table has none. Parts of 16 or 32 elements have odd
integers as scales, so a number is a small integer times its scale times what its block has in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from tract_core.data.blocks.form import BlockFormat, bits, halves
from tract_core.data.blocks.grids import grid
from tract_core.data.blocks.nested import LENGTH, in_parts
from tract_core.data.stored import Array


class GroupedParts(NamedTuple):
    """What numbers are products of.

    ``integers``: i8 [n, 256]; ``scales``: of each part, u8 [n, parts], odd and below 32; ``unit``: f32 [n, 1].
    """

    integers: Array
    scales: Array
    unit: Array


def _decode(taken: Callable[[Array], GroupedParts], blocks: Array) -> Array:
    """All bits of a product have room in f32."""
    integers, scales, unit = taken(blocks)
    return in_parts(integers, scales.astype(np.float32) * unit)


def _integers(name: str, codes: Array) -> Array:
    """What codes [n, groups] stand for [n, 256]."""
    return grid(name)[codes].reshape(-1, LENGTH)


def _signed(magnitudes: Array, signs: Array) -> Array:
    """Integers [n, 256], of which those are negative whose bit in bytes [n, 32] is 1."""
    return np.where(bits(signs), -magnitudes, magnitudes)


def _odd(codes: Array) -> Array:
    """The scales that codes stand for."""
    return 2 * codes.astype(np.uint8) + np.uint8(1)


def _pairs(packed: Array) -> Array:
    """Integers of 4 bits, two a byte [n, k], beside each other: the low one first [n, 2k]."""
    return np.stack((packed & 15, packed >> 4), axis=2).reshape(len(packed), 2 * packed.shape[1])


def _fields(numbers: Array, width: int, count: int) -> Array:
    """Of each integer [n, k] so many fields of that many bits, the lowest first [n, k * count]."""
    places = np.arange(0, width * count, width, dtype=numbers.dtype)
    return (numbers[:, :, None] >> places & (1 << width) - 1).reshape(len(numbers), count * numbers.shape[1])


def _view(blocks: Array, first: int, last: int, kind: str) -> Array:
    """Some bytes of each block as integers."""
    return np.ascontiguousarray(blocks[:, first:last]).view(kind)


_SIGNS: Final = np.array([code | code.bit_count() % 2 << 7 for code in range(128)], np.uint8)
"""Eight signs by seven of them: the number of negative ones is even."""


def _signs_and_scales(words: Array) -> tuple[Array, Array]:
    """Of words [n, 8]: of each part four times 7 bits for signs, and 4 for its scale."""
    return _SIGNS[_fields(words, 7, 4)], _odd(words >> 28)


def _of_iq1_s(blocks: Array) -> GroupedParts:
    words = _view(blocks, 34, 50, "<u2")
    integers = _integers("iq1", blocks[:, 2:34] | _fields(words, 3, 4) << 8)
    return GroupedParts(_shifted(integers, words >> 15), _odd(words >> 12 & 7), halves(blocks, 0) / 8)


def _of_iq1_m(blocks: Array) -> GroupedParts:
    high, words = _pairs(blocks[:, 32:48]), _view(blocks, 48, 56, "<u2")
    integers = _integers("iq1", blocks[:, :32] | (high & 7).astype(np.uint16) << 8)
    return GroupedParts(_shifted(integers, high >> 3), _odd(_fields(words, 3, 4)), half_of_iq1_m(blocks) / 8)


def half_of_iq1_m(blocks: Array) -> Array:
    """The number in f16 of blocks of IQ1_M [n, 56], of which each of the last four words has four bits: f32 [n, 1]."""
    fours = _view(blocks, 48, 56, "<u2") >> 12 << np.arange(0, 16, 4, dtype=np.uint16)
    return np.bitwise_or.reduce(fours, axis=1, keepdims=True).view(np.float16).astype(np.float32)


def _shifted(integers: Array, is_less: Array) -> Array:
    """Eight times integers [n, 256], and one more; or one less, where it is 1 for the neighbours [n, some]."""
    eights = (8 * integers).reshape(*is_less.shape, LENGTH // is_less.shape[1])
    return (eights + (1 - 2 * is_less.astype(np.int8))[:, :, None]).reshape(-1, LENGTH)


def _of_iq2_xxs(blocks: Array) -> GroupedParts:
    parts = blocks[:, 2:].reshape(len(blocks), 8, 8)
    signs, scales = _signs_and_scales(_view(parts[:, :, 4:].reshape(len(blocks), 32), 0, 32, "<u4"))
    magnitudes = _integers("iq2_xxs", parts[:, :, :4].reshape(len(blocks), 32))
    return GroupedParts(_signed(magnitudes, signs), scales, halves(blocks, 0) / 8)


def _of_iq2_xs(blocks: Array) -> GroupedParts:
    words = _view(blocks, 2, 66, "<u2")
    integers = _signed(_integers("iq2_xs", words & 511), _SIGNS[words >> 9])
    return GroupedParts(integers, _odd(_pairs(blocks[:, 66:])), halves(blocks, 0) / 8)


def _of_iq2_s(blocks: Array) -> GroupedParts:
    codes = blocks[:, 2:34] | _fields(blocks[:, 66:74], 2, 4).astype(np.uint16) << 8
    integers = _signed(_integers("iq2_s", codes), blocks[:, 34:66])
    return GroupedParts(integers, _odd(_pairs(blocks[:, 74:])), halves(blocks, 0) / 8)


def _of_iq3_xxs(blocks: Array) -> GroupedParts:
    """Half of what the table has, as all in it is even."""
    signs, scales = _signs_and_scales(_view(blocks, 66, 98, "<u4"))
    magnitudes = _integers("iq3_xxs", blocks[:, 2:66]) >> 1
    return GroupedParts(_signed(magnitudes, signs), scales, halves(blocks, 0) / 2)


def _of_iq3_s(blocks: Array) -> GroupedParts:
    codes = blocks[:, 2:66] | bits(blocks[:, 66:74]).astype(np.uint16) << 8
    integers = _signed(_integers("iq3_s", codes), blocks[:, 74:106])
    return GroupedParts(integers, _odd(_pairs(blocks[:, 106:])), halves(blocks, 0))


TAKEN_APART: Final[Mapping[str, Callable[[Array], GroupedParts]]] = {
    "iq1_s": _of_iq1_s,
    "iq1_m": _of_iq1_m,
    "iq2_xxs": _of_iq2_xxs,
    "iq2_xs": _of_iq2_xs,
    "iq2_s": _of_iq2_s,
    "iq3_xxs": _of_iq3_xxs,
    "iq3_s": _of_iq3_s,
}
"""What takes blocks [n, bytes] of a format apart, by its name."""


def _format(name: str, size: int) -> BlockFormat:
    return BlockFormat(name, LENGTH, size, partial(_decode, TAKEN_APART[name]))


IQ1_S: Final = _format("iq1_s", 50)
"""A scale in f16; low bits of codes of 11 bits, which stand for -1, 0 and 1; of each 32 elements a word with the high
bits, a scale of 3 bits, and whether 1/8 is added or subtracted."""

IQ1_M: Final = _format("iq1_m", 56)
"""Low bits of the same codes; of each in four bits the high ones, and whether 1/8 is added or subtracted; four words
with scales of 3 bits of each 16 elements, and in the highest bits a scale in f16."""

IQ2_XXS: Final = _format("iq2_xxs", 66)
"""A scale in f16; of each 32 elements four codes of 8 bits, four times seven signs, and a scale of 4 bits."""

IQ2_XS: Final = _format("iq2_xs", 74)
"""A scale in f16; of each 8 elements a code of 9 bits and seven signs; of each 16 elements a scale of 4 bits."""

IQ2_S: Final = _format("iq2_s", 82)
"""A scale in f16; low bits of codes of 10 bits, signs, high bits of codes; of each 16 elements a scale of 4 bits."""

IQ3_XXS: Final = _format("iq3_xxs", 98)
"""A scale in f16; of each 4 elements a code of 8 bits; of each 32 four times seven signs, and a scale of 4 bits."""

IQ3_S: Final = _format("iq3_s", 110)
"""A scale in f16; low bits of codes of 9 bits, of each 4 elements, and their high bits; signs; of each 32 elements a
scale of 4 bits."""
