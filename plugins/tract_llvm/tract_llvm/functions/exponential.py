"""exp, and what is made of it.

x = n * log(2) + r with |r| <= log(2)/2 (Cody and Waite), exp(x) = 2**n * (1 + r + r*r * polynomial(r)).
"""

from __future__ import annotations

from typing import Final

from tract_llvm.functions.coefficients import EXP, LN2
from tract_llvm.functions.floats import (
    LOG2_E,
    at_least,
    at_most,
    format_of,
    magnitude,
    nearest,
    polynomial,
    power_of_two,
    scaled,
    signed_as,
)
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, F64
from tract_llvm.language.values import Value

_RANGE: Final = {F32: (-104.0, 90.0), F64: (-746.0, 711.0)}
"""Beyond these, also half of exp is 0 or infinite."""

_TANH_IS_ONE: Final = {F32: 20.0, F64: 40.0}
"""Twice the number from which on tanh is 1."""


def less_one(x: Value, missing: Value | None = None) -> tuple[Value, Value]:
    """``(p, n)`` so that exp(x + missing) = (1 + p) * 2**n, n an integer, for x that is not far out."""
    count, n = nearest(x, LOG2_E)
    r = _reduced(x, count)
    if missing is not None:
        r = r + missing
    return r.times_plus(r * polynomial(r, EXP[x.type]), r), n


def _reduced(x: Value, count: Value) -> Value:
    high, low = LN2[x.type]
    return count.times_plus(-low, count.times_plus(-high, x))


def exp(x: Value) -> Value:
    """E to the power x. Within 1 unit."""
    return exp_of_negative(at_most(x, _RANGE[x.type][1]))


def exp_of_negative(x: Value) -> Value:
    """The same of a number that is not far above 0."""
    x = at_least(x, _RANGE[x.type][0])
    count, n = nearest(x, LOG2_E)
    r = _reduced(x, count)
    power = 1.0 + r.times_plus(r * polynomial(r, EXP[x.type]), r)
    found = x.function.scaled(power, count)
    return scaled(power, n) if found is None else found


def half_exp(x: Value) -> Value:
    """exp(x) / 2 of a number that is not negative: infinite only where that is. Within 1 unit."""
    p, n = less_one(at_most(x, _RANGE[x.type][1]))
    return scaled(1.0 + p, n - 1)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x)), as 2**-h / (2**-h + exp(-x) * 2**-h). Within 2.5 units.

    h is half of the exponent of exp(-x), so that no power of 2 leaves the type. Where one instruction multiplies by a
    power of 2, exp(-abs(x)) is never above 1, and needs no h.
    """
    if x.function.isa.scales:
        tail = exp_of_negative(-magnitude(x))
        return where(x >= 0, x.like(1), tail) / (1.0 + tail)
    end = -_RANGE[x.type][0]
    p, n = less_one(at_most(at_least(-x, -end), end))
    n = n.bits(format_of(x).signed)
    half = n >> 1
    power, one = power_of_two(n - half, x.type), power_of_two(-half, x.type)
    return one / p.times_plus(power, power + one)


def tanh(x: Value) -> Value:
    """(exp(2x) - 1) / (exp(2x) + 1), of the magnitude, where exp(2x) - 1 is computed without cancellation.

    Within 2.5 units.
    """
    size = magnitude(x)
    p, n = less_one(at_most(size + size, _TANH_IS_ONE[x.type]))
    power = power_of_two(n, x.type)
    above = power.times_plus(p, power - 1.0)
    return signed_as(above / (above + 2.0), x)
