"""The inverses of tan, sin and cos."""

from __future__ import annotations

from math import sqrt

from tract_llvm.functions.coefficients import ASIN, ATAN, HALF_PI
from tract_llvm.functions.floats import magnitude, polynomial, root, signed_as
from tract_llvm.language.function import where
from tract_llvm.language.values import Value

_EIGHTH = sqrt(2) - 1
"""tan(pi/8)"""


def atan(x: Value) -> Value:
    """From tan(3/8 pi) on pi/2 less that of 1/x, from tan(pi/8) on pi/4 plus that of (x - 1) / (x + 1), for x > 0.

    What is left is at most tan(pi/8): an odd polynomial.
    Within 1.9 units.
    """
    size = magnitude(x)
    far, middle = size > 1 / _EIGHTH, size > _EIGHTH
    above = where(far, x.like(-1), where(middle, size - 1.0, size))
    below = where(far, size, where(middle, size + 1.0, x.like(1)))
    high, low = HALF_PI[x.type]
    start = where(far, x.like(high), where(middle, x.like(high / 2), x.like(0)))
    missing = where(far, x.like(low), where(middle, x.like(low / 2), x.like(0)))
    t = above / below
    z = t * t
    return signed_as(start + (t + t.times_plus(z * polynomial(z, ATAN[x.type]), missing)), x)


def _reduced(size: Value) -> tuple[Value, Value]:
    """``(s, rest)``: asin(s) = s + rest, of the magnitude up to 1/2, else of sqrt((1 - magnitude) / 2)."""
    large = size > 0.5
    half = (1.0 - size) * 0.5
    z = where(large, half, size * size)
    s = where(large, root(half), size)
    return s, s * (z * polynomial(z, ASIN[s.type]))


def asin(x: Value) -> Value:
    """An odd polynomial up to 1/2; behind that pi/2 less twice that of sqrt((1 - x) / 2), for x > 0.

    Within 1.7 units.
    """
    size = magnitude(x)
    s, rest = _reduced(size)
    high, low = HALF_PI[x.type]
    far = high - (2.0 * s + (2.0 * rest - low))
    return signed_as(where(size > 0.5, far, s + rest), x)


def acos(x: Value) -> Value:
    """Near 0 what asin leaves to pi/2; above 1/2 twice asin of sqrt((1 - x) / 2), below -1/2 pi less that of -x.

    Within 1.3 units.
    """
    size = magnitude(x)
    s, rest = _reduced(size)
    high, low = HALF_PI[x.type]
    twice = 2.0 * (s + rest)
    far = where(x > 0, twice, 2.0 * (high - (s + (rest - low))))
    near = high - (signed_as(s, x) + (signed_as(rest, x) - low))
    return where(size > 0.5, far, near)
