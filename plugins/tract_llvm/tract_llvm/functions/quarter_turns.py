"""Angles as quarter turns and a rest of at most pi/4, exactly enough for any number: all in f64.

Up to `_NEAR` the quarter turns are subtracted in parts (Cody and Waite). For larger numbers, x * 2/pi is needed
modulo 4 only (Payne and Hanek): 2/pi stands there as a sum of short numbers, whose products with each half of x are
exact, and so is what is left of each modulo 4. Products with the first ones leave 0, so that no number has to be looked
up by the exponent of x: all are gone through, in a loop, which is only entered where a number is that large.
"""

from __future__ import annotations

from typing import Final

from tract_llvm.functions.coefficients import DIGITS, DIGITS_SCALE, HALF_PI, QUARTER_TURN
from tract_llvm.functions.double import Double, exact_product, exact_sum, halves, ordered_sum
from tract_llvm.functions.floats import nearest
from tract_llvm.functions.rounding import whole
from tract_llvm.language.buffers import table
from tract_llvm.language.function import where
from tract_llvm.language.types import F64, I32
from tract_llvm.language.values import Value

_NEAR: Final = 2.0**20
_DIGITS_FOR_F32: Final = 8
"""So many of `DIGITS` are enough for numbers with the exponents and digits of an f32."""


def quarter_turns(x: Value, *, from_f32: bool) -> tuple[Value, Value, Value]:
    """``(n, r, missing)``: x = n * pi/2 + r + missing, |r| <= pi/4, n modulo 4, for x >= 0 and not infinite (f64).

    ``from_f32``: whether x has only the digits and the exponents of an f32; then it takes less time.
    """
    function = x.function
    large = x >= _NEAR
    n, (r, missing) = _near(where(large, x.like(0), x), from_f32=from_f32)
    found = [function.variable(one) for one in (n, r, missing)]
    any_large = function.largest(where(large, function.constant(1, I32), 0))
    with function.when(any_large > 0):
        n, (r, missing) = _far(where(large, x, x.like(0)), _DIGITS_FOR_F32 if from_f32 else len(DIGITS))
        for variable, value in zip(found, (n, r, missing), strict=True):
            variable.value = where(large, value, variable.value)
    turns, angle, rest = (variable.value for variable in found)
    return turns, angle, rest


def _near(x: Value, *, from_f32: bool) -> tuple[Value, Double]:
    count, n = nearest(x, 1 / HALF_PI[F64][0])
    first, second, third, fourth = QUARTER_TURN
    r = x - count * first
    if from_f32:
        return n, (r - count * (second + third), x.like(0))
    r, low = exact_sum(r, -(count * second))
    r, lower = exact_sum(r, -(count * third))
    return n, ordered_sum(r, (low + lower) - count * fourth)


def _far(x: Value, digits: int) -> tuple[Value, Double]:
    function = x.function
    parts = halves(x * 2.0**-DIGITS_SCALE)
    shares = table(function, DIGITS, F64)
    high, low = (function.variable(x.like(0)) for _ in range(2))
    with function.loop("digit", digits) as place:
        digit = shares[place]
        for part in parts:
            total, missing = exact_sum(high.value, _modulo_four(part * digit))
            high.value = _modulo_four(total)
            low.value = low.value + missing
    turns, rest = ordered_sum(high.value, low.value)
    count, n = nearest(turns)
    r, missing = ordered_sum(turns - count, rest)
    first, second = HALF_PI[F64]
    angle, lost = exact_product(r, x.like(first))
    return n, ordered_sum(angle, lost + (r * second + missing * first))


def _modulo_four(x: Value) -> Value:
    return x - 4.0 * whole(x * 0.25)
