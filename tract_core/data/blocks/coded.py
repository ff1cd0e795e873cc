"""Blocks whose integers of 4 bits are places in a table of numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data.blocks.form import BlockFormat, halves, nibbles
from tract_core.data.stored import Array

LEVELS: Final = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
"""What the 16 codes of `IQ4_NL` and `IQ4_XS` stand for: near zero they are closer together."""

FLOATS: Final = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
"""Twice the 16 numbers of a float with two bits of exponent and one of mantissa (E2M1)."""

_LEVELS: Final = np.array(LEVELS, np.float32)
_FLOATS: Final = np.array(FLOATS, np.float32)


def _decode_iq4_nl(blocks: Array) -> Array:
    return _LEVELS[nibbles(blocks[:, 2:])] * halves(blocks, 0)


def _decode_iq4_xs(blocks: Array) -> Array:
    high = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = np.stack((blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4), axis=2).reshape(-1, 8)
    scales = halves(blocks, 0) * ((low | high << 4).astype(np.float32) - 32)
    levels = _LEVELS[nibbles(blocks[:, 8:].reshape(-1, 8, 16))]
    return (levels * scales[:, :, None]).reshape(-1, IQ4_XS.length)


def _decode_mxfp4(blocks: Array) -> Array:
    """Computed in f64, as half the largest scale times 12 is too large for f32 on the way."""
    scales = np.ldexp(1.0, blocks[:, :1].astype(np.int32) - 128)
    with np.errstate(over="ignore"):
        return (_FLOATS[nibbles(blocks[:, 1:])] * scales).astype(np.float32)


def _decode_nvfp4(blocks: Array) -> Array:
    numbers = _FLOATS[nibbles(blocks[:, 4:].reshape(-1, 4, 8))]
    return (numbers * scales_of_nvfp4(blocks)[:, :, None]).reshape(-1, NVFP4.length)


def scales_of_nvfp4(blocks: Array) -> Array:
    """Half the scales of blocks of NVFP4 [n, 36], in f32 [n, 4]: floats of 8 bits (e4m3fn), whose sign is of no effect.

    The code 127, which is no number in that type, is 0 here, as it is in ggml.
    """
    codes = blocks[:, :4] & np.uint8(127)
    exponents, digits = codes >> 3, codes & 7
    scales = np.ldexp(
        np.where(exponents, digits + 8, digits).astype(np.float32), np.maximum(exponents, 1) - np.int32(11)
    )
    return np.where(blocks[:, :4] == 127, np.float32(0), scales)


IQ4_NL: Final = BlockFormat("iq4_nl", 32, 18, _decode_iq4_nl)
"""A scale in f16, and 32 codes of `LEVELS`."""

IQ4_XS: Final = BlockFormat("iq4_xs", 256, 136, _decode_iq4_xs)
"""A scale in f16, of each 32 elements a scale of 6 bits, 32 less than stored, and 256 codes of `LEVELS`."""

MXFP4: Final = BlockFormat("mxfp4", 32, 17, _decode_mxfp4)
"""A power of two as a byte, 127 more than its exponent, and 32 floats of 4 bits (OCP Microscaling Formats 1.0)."""

NVFP4: Final = BlockFormat("nvfp4", 64, 36, _decode_nvfp4)
"""Of each 16 elements a scale, a float of 8 bits (e4m3fn), and behind them 64 floats of 4 bits."""
