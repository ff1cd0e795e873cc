"""From ranges to bytes: the steps of activations and of weights."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_quantize.ranges import Range

MOST: Final = 255
"""The largest byte."""

_BIAS: Final = 2.0**30
"""A bias has no more steps than that, so that sums with it fit 32 bits."""

_SMALLEST: Final = float(np.finfo(np.float32).tiny)


@frozen
class Steps:
    """A tensor as bytes without a sign: (byte - ``zero``) * ``scale``."""

    scale: float
    zero: int

    @staticmethod
    def of(found: Range) -> Steps | None:
        """Those that cover a range and 0. ``None`` where there is nothing but zeros, or where f32 has no such steps."""
        low, high = min(found.low, 0.0), max(found.high, 0.0)
        scale = float(np.float32((high - low) / MOST))
        if not _SMALLEST < scale < np.inf:
            return None
        return Steps(scale, int(np.clip(round(-low / scale), 0, MOST)))

    def byte_of(self, number: float) -> int:
        """The byte that stands for a number, rounded as `QuantizeLinear` does."""
        steps = np.rint(np.float32(number) / np.float32(self.scale))
        return int(np.clip(float(steps) + self.zero, 0, MOST))


GATE: Final = Steps(float(np.float32(1 / MOST)), 0)
"""Those of numbers between 0 and 1."""


@frozen
class Weights:
    """Weights as integers: times ``scale``, which holds one number for each position of an axis."""

    integers: Array
    scale: Array


def by_channel(weights: Array, axis: int, bits: int, floor: Array | float = 0.0) -> Weights:
    """Weights as integers with signs of so many bits, the same number of each sign; a scale for each channel.

    ``floor``: scales that are never gone below, as a bias in their steps would not fit 32 bits.
    """
    most = (1 << (bits - 1)) - 1
    others = tuple(place for place in range(weights.ndim) if place != axis)
    largest = np.abs(weights).max(axis=others, initial=0.0).astype(np.float64)
    scale = np.maximum(np.maximum(largest / most, floor), _SMALLEST).astype(np.float32)
    spread = scale.reshape([-1 if place == axis else 1 for place in range(weights.ndim)])
    integers = np.clip(np.rint(weights / spread), -most, most).astype(np.int8)
    return Weights(integers, scale)


def in_blocks(weights: Array, axis: int, bits: int, block: int) -> Weights:
    """Weights as integers with signs of 4 or 8 bits; a scale for each ``block`` positions of an axis.

    The scale has the number of blocks in the place of that axis. Of four bits, -8 is used too: the element of the
    largest magnitude becomes it.
    """
    moved = np.moveaxis(weights, axis, -1).astype(np.float32)
    size = moved.shape[-1]
    count = -(-size // block)
    padded = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, count * block - size)])
    cut = padded.reshape(*moved.shape[:-1], count, block)
    scale = _of_blocks(cut, bits)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    integers = np.clip(np.rint(cut / np.where(scale, scale, 1)[..., None]), low, high)
    whole = integers.reshape(*moved.shape[:-1], count * block)[..., :size]
    kind: Any = ml_dtypes.int4 if bits == 4 else np.int8
    return Weights(np.moveaxis(whole, -1, axis).astype(kind), np.moveaxis(scale, -1, axis))


def _of_blocks(cut: Array, bits: int) -> Array:
    """One scale for each block: of 8 bits by the largest magnitude; of 4, with the sign that gives it -8."""
    place = np.abs(cut).argmax(axis=-1)[..., None]
    largest = np.take_along_axis(cut, place, axis=-1)[..., 0]
    if bits == 4:
        return (largest / np.float32(-8)).astype(np.float32)
    return (np.abs(largest) / np.float32(127)).astype(np.float32)


def least_scale(bias: Array, scale: float) -> Array:
    """Scales of weights below which a bias in steps of both has no place in 32 bits."""
    return np.abs(bias.astype(np.float64)) / (scale * _BIAS)


def rounded_bias(bias: Array, factor: Array) -> Array:
    """A bias in whole steps, as f32. ``factor``: the steps, which stretch to its shape."""
    wide = factor.astype(np.float64)
    return (np.rint(bias.astype(np.float64) / wide) * wide).astype(np.float32)
