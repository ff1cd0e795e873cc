"""HARD_SWISH of bytes, in the 16-bit arithmetic of TFLite's kernel.

Source: the reference kernel of LiteRT.
"""

from __future__ import annotations

import numpy as np

from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.gemmlowp import halves_away
from tract_tensorflow.tflite.quantization import Quantization, fixed_point
from tract_tensorflow.tflite.tables import OnIntegers


def hard_swish_of(x: Quantization, y: Quantization) -> OnIntegers:
    """What the kernel makes of each integer, for these scales and zero points."""
    fine = np.float32(1 / 128) * np.float32(x.scale)
    out, out_shift = _short(float(fine / np.float32(y.scale)))
    gate, gate_shift = _short(float(fine / np.float32(3 / 32768)))

    def on_integers(values: Array) -> Array:
        high = (values - x.zero) * 128
        data = _high_half(high, out)
        gated = _saturated(high << (gate_shift - 1)) if gate_shift > 0 else high
        gated = _high_half(gated, gate)
        if gate_shift > 0:
            gated = _saturated(gated * 2)
        elif gate_shift < 0:
            gated = _divided(gated, -gate_shift)
        part = (gated + 2**15) >> 1
        return _divided(_cut_product(part, data), -out_shift) + y.zero

    return on_integers


def _short(factor: float) -> tuple[int, int]:
    """A factor as a multiplier of 15 bits, and a shift."""
    multiplier, shift = fixed_point(factor)
    return (2**15 - 1 if multiplier >= 2**31 - 1 - 2**15 else (multiplier + 2**15) >> 16), shift


def _saturated(x: Array) -> Array:
    return np.clip(x, -(2**15), 2**15 - 1)


def _high_half(x: Array, multiplier: int) -> Array:
    """The high 16 bits of twice a product, halves up."""
    return (x * multiplier + 2**14) >> 15


def _cut_product(a: Array, b: Array) -> Array:
    """The same, cut off towards zero."""
    return np.sign(b) * ((a * np.abs(b)) >> 15)


def _divided(x: Array, exponent: int) -> Array:
    return halves_away(x, np.array(exponent))
