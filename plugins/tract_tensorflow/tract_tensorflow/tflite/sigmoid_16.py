"""LOGISTIC and TANH of 16-bit numbers: between 256 values of the logistic function, of which both are made.

Source: the reference kernels of LiteRT.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.tables import OnIntegers

_STEP: Final = 1 / 24
"""How far apart the numbers are whose values are known."""


def _values() -> Array:
    """1 / (1 + exp(-x)) of 256 numbers from 0, with 16 bits behind the point.

    A line between two of them lies below the function, by its second derivative; each is raised by half of the most
    that this is. The last one is the greatest number below 1.
    """
    found = 1 / (1 + np.exp(-np.arange(256) * _STEP))
    bend = found * (1 - found) * (2 * found - 1)
    raised = np.floor(2**16 * (found + bend * _STEP**2 / 16) + 0.5).astype(np.int64)
    raised[-1] = 2**16 - 1
    return raised


_VALUES: Final = _values()


def logistic_16(scale: float) -> OnIntegers:
    """Of numbers in steps of ``scale``, in steps of 2**-15."""
    multiplier, shift = _in_table_steps(scale, (0,))

    def on_integers(values: Array) -> Array:
        x = _scaled(values, multiplier, shift)
        found = _between(np.abs(x), 9, (2**15 - 1) << 10)
        signed = np.where(x >= 0, found + 2**9, 2**25 - found + 2**9 - 1)
        return signed >> 10

    return on_integers


def tanh_16(scale: float) -> OnIntegers:
    """As `logistic_16`, of twice the number, less a half, doubled."""
    multiplier, shift = _in_table_steps(scale, (0, 1))

    def on_integers(values: Array) -> Array:
        x = _scaled(values, multiplier, shift)
        found = _between(np.abs(x), 8, (2**16 - 1) << 8)
        signed = np.where(x >= 0, found - 2**23 + 2**7, -found + 2**23 + 2**7 - 1)
        return signed >> 8

    return on_integers


def _in_table_steps(scale: float, powers: tuple[int, ...]) -> tuple[int, int]:
    """What integers are multiplied by, and then shifted by to the right.

    A power of two is shifted to the left, where the kernel has that; else the multiplier has 15 bits.
    """
    exponent = np.log2(scale)
    left = 12 + int(np.rint(exponent))
    if abs(exponent - np.rint(exponent)) < 1e-3 and left in powers:
        return 3 << left, 0
    multiplier, shift = float(np.float32(scale)) * 4096 * 3, 0
    while multiplier <= 32767 / 2 and shift <= 30:
        multiplier, shift = multiplier * 2, shift + 1
    return int(multiplier), shift


def _scaled(values: Array, multiplier: int, shift: int) -> Array:
    return (values * multiplier + ((1 << (shift - 1)) if shift else 0)) >> shift


def _between(x: Array, bits: int, most: int) -> Array:
    """What lies between two values, with ``bits`` bits of the place between them; ``most`` behind the last."""
    place = np.minimum(x >> bits, 254)
    rest = x & ((1 << bits) - 1)
    line = (_VALUES[place] << bits) + rest * (_VALUES[place + 1] - _VALUES[place])
    return np.where(x >> bits >= 255, most, line)
