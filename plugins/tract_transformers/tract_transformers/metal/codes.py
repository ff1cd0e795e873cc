"""Keys and values as integers of 8 bits, with a scale for each position and head."""

from __future__ import annotations

import mlx.core as mx

from tract_transformers.ops.paged_attention import LARGEST, LEAST


def in_bytes(*new: mx.array) -> list[mx.array]:
    """Keys and values [T,H,D] as integers, then the scales [T,H] of each: as the operator's own `in_bytes` does it."""
    found = [_codes(one) for one in new]
    return [*(codes for codes, _ in found), *(scale for _, scale in found)]


def _codes(numbers: mx.array) -> tuple[mx.array, mx.array]:
    finite = mx.all(mx.isfinite(numbers), axis=-1)
    top = mx.where(finite, mx.max(mx.abs(numbers), axis=-1), mx.nan)
    usual = top >= LEAST
    inverse = mx.where(usual, LARGEST / top, 0)
    codes = mx.round(mx.where(usual[..., None], numbers, 0) * inverse[..., None])
    return codes.astype(mx.int8), mx.where(top < LEAST, 0, top * (1 / LARGEST))
