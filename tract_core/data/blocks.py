"""Tensors in blocks: a few elements together share a scale, and each is a small integer.

Blocks run along the last axis, in order; `Q4_0` and `Q8_1` are those of ggml.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import prod
from typing import Final

import numpy as np

from tract_core.data.stored import Array
from tract_core.errors import InputError
from tract_core.frozen import frozen

_TOO_LARGE: Final = 65520
"""From here on, f16 rounds to infinity."""


@frozen
class BlockFormat:
    """``length``: elements of a block; ``size``: its bytes; ``decode``: blocks [n, size] to f32 [n, length].

    ``name``: what the format is called.
    """

    name: str
    length: int
    size: int
    decode: Callable[[Array], Array] = field(compare=False, repr=False)


@frozen
class Blocks:
    """A tensor that is kept in blocks. ``shape``: two axes or more; ``content``: bytes, read-only."""

    format: BlockFormat
    shape: tuple[int, ...]
    content: Array = field(compare=False)

    def to_f32(self) -> Array:
        """The elements that it stands for."""
        blocks = self.content.reshape(-1, self.format.size)
        return self.format.decode(blocks).reshape(self.shape)


def byte_size(form: BlockFormat, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor of that shape, whose rows are whole blocks."""
    return prod(shape) // form.length * form.size


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


def _scales(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)


def _decode_q4_0(blocks: Array) -> Array:
    codes = np.concatenate((blocks[:, 2:] & 15, blocks[:, 2:] >> 4), axis=1)
    return (codes.astype(np.float32) - 8) * _scales(blocks)


def _decode_q8_1(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[:, 4:]).view(np.int8).astype(np.float32) * _scales(blocks)


Q4_0: Final = BlockFormat("q4_0", 32, 18, _decode_q4_0)
"""A scale in f16, and 32 integers of 4 bits, eight less than stored."""

Q8_1: Final = BlockFormat("q8_1", 32, 36, _decode_q8_1)
"""A scale and a sum in f16, and 32 integers of 8 bits. The sum serves products of integers, and says nothing new."""
