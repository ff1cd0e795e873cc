"""Functions on integers with a fixed point that TFLite's kernels compute: of arrays, and of tensors of a model alike.

A number is held as x * 2**31, or with some bits before the point as x * 2**(31 - bits), in 64 bits, for products.

Source: the approximations of gemmlowp, and the kernels of LiteRT that extend them.
"""

from __future__ import annotations

from typing import Final, Protocol, Self, TypeVar

import numpy as np

from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.quantization import fixed_point
from tract_tensorflow.tflite_only.fixed_point import divided_by_power


class Integers(Protocol):
    """Integers of 64 bits: an array, or a tensor of a model."""

    def __add__(self, other: Self | int, /) -> Self: ...
    def __radd__(self, other: int, /) -> Self: ...
    def __sub__(self, other: Self | int, /) -> Self: ...
    def __rsub__(self, other: int, /) -> Self: ...
    def __mul__(self, other: Self | int, /) -> Self: ...
    def __lshift__(self, other: Self | int, /) -> Self: ...
    def __rshift__(self, other: Self | int, /) -> Self: ...


N = TypeVar("N", bound=Integers)

ONE: Final = 2**31 - 1
"""The greatest number below 1, which stands for 1."""


def product(a: N, b: N) -> N:
    """The product of two numbers, halves up."""
    return (a * b + 2**30) >> 31


def _times(a: N, number: int) -> N:
    return (a * number + 2**30) >> 31


def below_one(x: N) -> N:
    """Numbers of 1 and above become the greatest below 1. They are not negative."""
    over = x >> 31
    return x - over * (x - ONE)


def bit_length(x: N) -> N:
    """How many binary digits a positive number of at most 32 has."""
    found, rest = x * 0, x
    for step in (16, 8, 4, 2, 1):
        # 1 where something is left above so many digits: the sign of what they cannot hold.
        more = 1 + (((rest >> step) - 1) >> 32)
        found, rest = found + more * step, rest >> (more * step)
    return found + rest


def reciprocal(x: N) -> tuple[N, N]:
    """1 / x of a positive x of at most 31 digits, as a number between a half and 1, and the number of digits of x."""
    digits = bit_length(x)
    return one_over_one_plus((x << (32 - digits)) - 2**31), digits


def one_over_one_plus(x: N) -> N:
    """1 / (1 + x) for an x from 0 to 1: three steps of Newton and Raphson, from the best line."""
    half = (x + 2**31) >> 1
    found = _times(half, -1010580540) + 1515870810
    for _ in range(3):
        error = 2**29 - product(half, found)
        found = found + product(found, error) * 4
    return below_one(found * 2)


def inverse_square_root(x: N) -> tuple[N, N]:
    """1 / sqrt(x) of an x from 2 up to 2**29, as a multiplier and a shift to the right, which may be negative.

    Five steps of Newton and Raphson, from 1, with three bits before the point.
    """
    pairs = ((31 - bit_length(x)) >> 1) - 1
    scaled = (x << (pairs * 2)) >> 1
    half = (scaled + 1) >> 1
    found = scaled * 0 + 2**28
    for _ in range(5):
        cube = product(product(found, found), found) * 64
        found = (_times(found, 2**28 + 2**27) - product(half, cube)) * 8
    return _times(found, 1518500250), 11 - pairs


def logarithm(x: N) -> N:
    """The natural logarithm of an x of 1 or more with 12 bits before the point, with 5 bits before the point.

    A power of two, of which the nearer one is taken, and a quotient of polynomials.
    """
    near, half = 1805811301, 1518500250
    digits, lower = bit_length(x), _times(x, half)
    lower_digits = bit_length(lower)
    first = below_one(_times(x << (31 - digits), half) * 2)
    second = below_one(x << (31 - lower_digits))
    power = _greater(((digits - 20) << 25) + 2**23, ((lower_digits - 19) << 25) - 2**23)
    r = _greater(first * -1, second * -1) * -1
    middle, q = (r + (near + 1)) >> 1, (r - near) * 2
    square = product(q, q)
    above = product(q, r) + _times(product(q, square), 117049297)
    below = product(middle, q + 1057819769 + _times(square, 127690142)) + _times(q, 638450708)
    return (_times(power, 1488522236) + product(_away(above, 6), one_over_one_plus(below))) * 2


def _greater(a: N, b: N) -> N:
    """The greater one of two."""
    distance = a - b
    return a - distance * ((distance >> 63) * -1)


def _away(x: N, bits: int) -> N:
    """X / 2**bits, halves away from zero."""
    return (x + 2 ** (bits - 1) + (x >> 63)) >> bits


def exponential(x: Array) -> Array:
    """The number e to the power x, of an array of x that are not positive, with five bits before the point."""
    quarter = 1 << 24
    inside = ((x & (quarter - 1)) - quarter) << 5
    found = _exponential_near_zero(inside)
    left = (inside >> 5) - x
    for bit, power in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        found = np.where(left & (quarter << bit), _times(found, power), found)
    return np.where(x == 0, ONE, found)


def _exponential_near_zero(x: Array) -> Array:
    """Of numbers from -1/4 up to 0: four terms around -1/8."""
    at, third = 1895147668, 715827883
    x = x + (1 << 28)
    square = product(x, x)
    cube, fourth = product(square, x), product(square, square)
    two = np.array(2, np.int64)
    terms = _times(halves_away(fourth, two) + cube, third) + square
    return at + _times(x + halves_away(terms, two - 1), at)


def halves_away(x: Array, exponent: Array) -> Array:
    """X / 2**exponent, halves away from zero, in 64 bits."""
    return divided_by_power(x, exponent).astype(np.int64)


def times_factor(x: Array, factor: float) -> Array:
    """Integers of 32 bits times a factor, rounded as kernels do: the high half of twice the product, then the shift."""
    multiplier, shift = fixed_point(abs(factor))
    signed = multiplier if factor >= 0 else -multiplier
    return times_powers(x, np.full_like(x, signed, np.int64), np.full_like(x, shift, np.int64))


def times_powers(x: Array, multipliers: Array, shifts: Array) -> Array:
    """Integers of 32 bits times multipliers * 2**(shifts - 31), rounded so."""
    left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    shifted = (x.astype(np.int64) << left).astype(np.int32).astype(np.int64)
    return halves_away(product(shifted, multipliers), right)
