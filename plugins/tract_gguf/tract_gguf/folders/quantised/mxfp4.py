"""MXFP4 of the Open Compute Project's Microscaling Formats, as gpt-oss has it, and compressed-tensors.

Blocks of 32 floats of 4 bits (e2m1) along the last axis share a scale of 8 bits (e8m0). ``NAME_blocks`` [..., K/32, 16]
have two floats in a byte, the first in its low half; ``NAME_scales`` are [..., K/32].
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from tract_core.data.blocks import MXFP4, Blocks
from tract_core.data.scratch import computed_of
from tract_core.plugins.keys import Array
from tract_gguf.folders.quantised.module import Module, Settings, elements
from tract_gguf.reading.quantised import QuantisedTensor
from tract_gguf.reading.tensors import GgufTensor

PARTS: Final = ("blocks", "scales")

_LENGTH: Final = MXFP4.length
_BYTES: Final = _LENGTH // 2


def mxfp4(settings: Settings, module: Module) -> QuantisedTensor:
    """The tensor of a module, of two axes or more. Raises ModelError."""
    packed = module.part("blocks", ("u8",))
    if len(packed.shape) < 3 or packed.shape[-1] != _BYTES or not all(packed.shape):
        raise module.wrong(packed, f"shape is {list(packed.shape)}, wanted [..., K/{_LENGTH}, {_BYTES}]")
    scale = module.part("scales", ("u8", "f8e8m0fnu"), packed.shape[:-1])
    return in_blocks(module, packed, scale, (*packed.shape[:-2], packed.shape[-2] * _LENGTH))


def in_blocks(module: Module, packed: GgufTensor, scale: GgufTensor, shape: tuple[int, ...]) -> QuantisedTensor:
    """Two floats in a byte, as one after the other, and scales, in the order that blocks of ggml have them."""

    def make() -> Blocks:
        halves, powers = elements(packed).reshape(-1, _BYTES), elements(scale).view(np.uint8).reshape(-1, 1)
        return Blocks(MXFP4, shape, computed_of([halves], _as_blocks(halves, powers)))

    module.check_size(prod(shape) // 2)
    return QuantisedTensor(f"{module.name}.weight", "mxfp4", shape, make)


def _as_blocks(halves: Array, powers: Array) -> Array:
    """Of ggml: the scale, then the first 16 floats in the low halves of bytes, and the others in the high ones."""
    made = np.empty((len(halves), MXFP4.size), np.uint8)
    made[:, :1] = powers
    first, second = halves[:, : _BYTES // 2], halves[:, _BYTES // 2 :]
    made[:, 1::2] = first & 15 | second << 4
    made[:, 2::2] = first >> 4 | second & 240
    return made.reshape(-1)
