"""Floats as integers in the same order: MLX leaves open which of two zeros, or of a number and none, is larger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import mlx.core as mx

from tract_metal.elements import wide
from tract_metal.lower.binary import FLOATS

_MAGNITUDE: Final = 0x7FFFFFFF
_INFINITE: Final = 0x7F800000


def in_order(x: mx.array, join: Callable[[mx.array], mx.array], *, least: bool) -> mx.array:
    """What ``join`` makes of elements by which is the larger one, or the smaller one where ``least``.

    -0.0 is below 0.0, and what is not a number wins. Integers are compared as they are.
    """
    if x.dtype not in FLOATS:
        return join(x)
    return of_keys(join(keys_of(x, least=least)), x.dtype, least=least)


def keys_of(x: mx.array, *, least: bool) -> mx.array:
    """Integers of 32 bits in the order of floats. What is not a number is the largest one, or the least."""
    data = wide(x)
    bits = mx.view(data, mx.int32)
    keys = mx.where(bits < 0, mx.bitwise_xor(bits, _MAGNITUDE), bits)
    return mx.where(mx.isnan(data), mx.array(-_MAGNITUDE - 1 if least else _MAGNITUDE, mx.int32), keys)


def of_keys(keys: mx.array, kind: mx.Dtype, *, least: bool) -> mx.array:
    """The floats of `keys_of`; an infinity for what MLX joins nothing to: the end of integers."""
    keys = mx.minimum(keys, _INFINITE) if least else mx.maximum(keys, -_INFINITE - 1)
    bits = mx.where(keys < 0, mx.bitwise_xor(keys, _MAGNITUDE), keys)
    return mx.view(bits, mx.float32).astype(kind)
