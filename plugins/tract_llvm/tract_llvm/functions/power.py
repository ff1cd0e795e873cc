"""a to the power b, as ``pow`` of C and C++ has it, and of integers."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Final

from tract_llvm.functions.coefficients import LN2, LOG, LOG_FIFTH, THIRDS
from tract_llvm.functions.double import Double, exact_product, exact_sum, ordered_sum
from tract_llvm.functions.exponential import less_one
from tract_llvm.functions.floats import at_least, at_most, decomposed, magnitude, polynomial, root, scaled
from tract_llvm.functions.rounding import whole
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, F64
from tract_llvm.language.values import Value

_FAR: Final = 1400.0
"""Of which e to the power is infinite, and 0 of its negative: in two steps as `scaled` takes them."""


def power(a: Value, b: Value) -> Value:
    """exp(b * log(a)), of f32 with the digits of an f64, of f64 with about 64 digits, and what C says of the ends.

    Within 0.6 units in f32, 1.1 in f64.
    """
    function = a.function
    size = magnitude(a)
    found = function.convert(_power(function.convert(size, F64), function.convert(b, F64), a.type is F32), a.type)
    integer = b.equals(whole(b))
    half = b * 0.5
    odd = integer & half.differs(whole(half)) & (magnitude(b) < inf)
    negative = (a < 0) | (1.0 / a).equals(-inf)
    found = where(negative & odd, -found, found)
    found = where((a < 0) & (a > -inf) & ~integer, a.like(nan), found)
    one = b.equals(0) | a.equals(1) | (a.equals(-1) & magnitude(b).equals(inf))
    return where(one, a.like(1), found)


def _power(size: Value, b: Value, narrow: bool) -> Value:
    """size**b, size not negative, both f64."""
    b = at_least(at_most(b, 2.0**70), -(2.0**70))
    high, low = _log_of_f32(size) if narrow else _log(size)
    at_end = size.equals(0) | size.equals(inf)
    end = where(size > 1, size.like(inf), size.like(-inf))
    high, low = where(at_end, end, where(size.differs(size), size, high)), where(at_end, size.like(0), low)
    product, missing = (high * b, low * b) if narrow else exact_product(high, b)
    if not narrow:
        missing = missing + low * b
    near = magnitude(product) < _FAR
    product = at_least(at_most(product, _FAR), -_FAR)
    p, n = less_one(product, where(near, missing, missing.like(0)))
    return scaled(1.0 + p, n)


def _log_of_f32(x: Value) -> Double:
    """log(x), with the digits of an f64."""
    m, k = decomposed(x)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    return k.times_plus(LN2[F64][0], (s + s) + s * z * polynomial(z, LOG[F64])), k * LN2[F64][1]


def _log(x: Value) -> Double:
    """log(x) in two parts; of the series of log((1+s) / (1-s)) the first two terms are taken with all digits."""
    m, k = decomposed(x)
    f = m - 1.0
    below, rest = ordered_sum(f.like(2), f)
    s = f / below
    product, missing = exact_product(s, below)
    s_low = ((f - product) - missing - s * rest) / below
    z, z_low = exact_product(s, s)
    z_low = z_low + (s + s) * s_low
    cube, cube_low = exact_product(s, z)
    cube_low = cube_low + (s * z_low + s_low * z)
    third, third_low = exact_product(cube, cube.like(THIRDS[0]))
    third_low = third_low + (cube * THIRDS[1] + cube_low * THIRDS[0])
    high, low = exact_sum(k * LN2[F64][0], s + s)
    high, lower = exact_sum(high, third)
    tail = cube * z * polynomial(z, LOG_FIFTH[F64])
    return ordered_sum(high, ((low + lower) + (s_low + s_low + third_low)) + k.times_plus(LN2[F64][1], tail))


def integer_power(a: Value, b: Value) -> Value:
    """By squaring, wrapping around; a negative power is one divided by the positive one, cut off at the point."""
    function = a.function
    negative = b < 0
    left = where(negative, b.like(0), b)
    factor, rest, found = (function.variable(one) for one in (a, left, a.like(1)))
    with function.loop("bit", b.type.bits):
        taken = (rest.value & 1).differs(0)
        found.value = where(taken, found.value * factor.value, found.value)
        factor.value = factor.value * factor.value
        rest.value = rest.value >> 1
    unit = where((b & 1).differs(0), a, a.like(1))
    of_unit = a.equals(1) if a.type.kind == "u" else a.equals(1) | a.equals(-1)
    return where(negative, where(of_unit, unit, a.like(0)), found.value)


_SHORT: Final[dict[float, Callable[[Value], Value]]] = {
    -1.0: lambda x: 1.0 / x,
    0.5: lambda x: where(x.equals(-inf), x.like(inf), root(x) + 0.0),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
}
"""Powers by products and roots. Of -0.0 the root is -0.0, and of -inf none, but the power is 0, and infinite."""


def constant_power(x: Value, exponent: float) -> Value:
    """A power that is known now."""
    short = _SHORT.get(exponent)
    return short(x) if short else power(x, x.like(exponent))
