"""Floats of 16 bits as blocks of one element each: so weights in them stay as they are until a product reads them."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data.blocks.form import BlockFormat, halves
from tract_core.data.stored import Array


def _decode_f16(blocks: Array) -> Array:
    return halves(blocks, 0)


def _decode_bf16(blocks: Array) -> Array:
    """The upper half of an f32."""
    return (np.ascontiguousarray(blocks).view("<u2").astype(np.uint32) << 16).view(np.float32)


F16: Final = BlockFormat("f16", 1, 2, _decode_f16)
"""Floats of IEEE 754 in 16 bits."""

BF16: Final = BlockFormat("bf16", 1, 2, _decode_bf16)
"""Floats of 32 bits without the lower half."""
