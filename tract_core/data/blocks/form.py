"""What a format of blocks is, and a tensor that is kept in one. Blocks run along the last axis, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import prod

import numpy as np

from tract_core.data.stored import Array
from tract_core.frozen import frozen


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


def halves(blocks: Array, place: int) -> Array:
    """The numbers of 16 bits at that byte of blocks [n, size], as f32 [n, 1]."""
    return np.ascontiguousarray(blocks[:, place : place + 2]).view("<f2").astype(np.float32)


def nibbles(packed: Array) -> Array:
    """Integers of 4 bits, two a byte [..., n]: the low ones of all, and behind them the high ones [..., 2n]."""
    return np.concatenate((packed & 15, packed >> 4), axis=-1)


def bits(packed: Array) -> Array:
    """Bits of bytes [..., n], the lowest first [..., 8n]."""
    return np.unpackbits(packed, axis=-1, bitorder="little")
