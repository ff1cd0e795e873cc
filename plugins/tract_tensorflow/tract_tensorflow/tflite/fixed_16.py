"""Functions on integers of 16 bits with a fixed point, as tables of all of their values.

Source: the functions of gemmlowp on 16 bits, which the kernels of LiteRT's integer LSTM compute gates with. A number is
x * 2**(bits - 15), of ``bits`` before the point; what is computed here is kept in 64 bits and cut as 16 would be.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from tract_core.plugins.keys import Array
from tract_tensorflow.tflite_only.fixed_point import divided_by_power

_LOW, _HIGH = -(1 << 15), (1 << 15) - 1
_ONE: Final = _HIGH
"""The greatest number below 1, which stands for 1."""

_ONE_OF_2: Final = 1 << 13
"""1, of two bits before the point."""

_STEPS: Final = (
    (-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535), (3, 720401), (4, 242),
)  # fmt: skip
"""For powers of two, e to the power of minus that, of 32 bits."""


@cache
def sigmoid_table() -> Array:
    """1 / (1 + exp(-x)) of every x of three bits before the point, of none before it: [65536], i16, the least first."""
    x = _all()
    positive = _one_over_one_plus(_exp(-np.abs(x), 3))
    return _table(np.where(x == 0, 1 << 14, np.where(x > 0, positive, _ONE - positive)))


@cache
def tanh_table(bits: int) -> Array:
    """The same of tanh, of so many bits before the point, at most 6."""
    x = _all()
    found = _difference_over_sum(_exp(-np.abs(x), bits + 1))
    return _table(np.where(x == 0, 0, np.where(x < 0, -found, found)))


def _all() -> Array:
    return np.arange(_LOW, _HIGH + 1, dtype=np.int64)


def _table(values: Array) -> Array:
    return values.astype(np.int16)


def _wrapped(x: Array) -> Array:
    return ((x - _LOW) & 0xFFFF) + _LOW


def _saturated(x: Array) -> Array:
    return np.clip(x, _LOW, _HIGH)


def _product(a: Array, b: Array | int) -> Array:
    """The high half of twice the product: halves away from zero, cut off towards it."""
    whole = a * b
    nudged = whole + np.where(whole >= 0, 1 << 14, 1 - (1 << 14))
    return _saturated(np.where(nudged >= 0, nudged >> 15, -(-nudged >> 15)))


def _divided(x: Array, exponent: int) -> Array:
    return divided_by_power(x, np.asarray(exponent)).astype(np.int64)


def _constant(number: int) -> int:
    """A number of 32 bits as one of 16."""
    return int(_divided(np.asarray(number), 16))


def _exp(x: Array, bits: int) -> Array:
    """E to the power of an x that is not positive, of so many bits before the point."""
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    part = (x & (quarter - 1)) - quarter
    found = _exp_of_quarter(_saturated(part << bits))
    rest = part - x
    for exponent, number in _STEPS:
        if bits > exponent:
            is_there = (rest >> (fraction + exponent)) & 1 == 1
            found = np.where(is_there, _product(found, _constant(number)), found)
    if bits > 5:
        found = np.where(x < -(32 << fraction), 0, found)
    return np.where(x == 0, _ONE, found)


def _exp_of_quarter(x: Array) -> Array:
    """The same from minus a quarter to 0: a polynomial around minus an eighth."""
    constant, third = _constant(1895147668), _constant(715827883)
    x = _wrapped(x + (1 << 12))
    square = _product(x, x)
    cube, fourth = _product(square, x), _product(square, square)
    rest = _product(_wrapped(_divided(fourth, 2) + cube), third)
    higher = _divided(_wrapped(rest + square), 1)
    return _saturated(constant + _product(_wrapped(x + higher), constant))


def _newton(x: Array) -> Array:
    """2 / (1 + x) for an x from 0 to 1, of two bits before the point."""
    total = x + _ONE
    half = (total + 1) >> 1
    found = _constant(1515870810) + _product(half, _constant(-1010580540))
    for _ in range(3):
        error = _ONE_OF_2 - _product(half, found)
        found = _wrapped(found + _saturated(_product(found, error) << 2))
    return found


def _one_over_one_plus(x: Array) -> Array:
    return _saturated(_newton(x) << 1)


def _difference_over_sum(x: Array) -> Array:
    """(1 - x) / (1 + x)."""
    return _saturated((_newton(x) - _ONE_OF_2) << 2)
