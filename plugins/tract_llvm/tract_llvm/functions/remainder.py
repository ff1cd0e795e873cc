"""Remainders of divisions. Those of floats are exact."""

from __future__ import annotations

from math import inf, nan
from typing import Final

from tract_llvm.functions.double import exact_product
from tract_llvm.functions.floats import format_of, magnitude, power_of_two, scaled, signed_as
from tract_llvm.functions.rounding import whole
from tract_llvm.language.function import where
from tract_llvm.language.types import F64, I64
from tract_llvm.language.values import Value

_STEP: Final = 50
"""How many binary digits of a quotient are found at once: all of them are exact in an f64."""


def remainder(a: Value, b: Value) -> Value:
    """Of floats, ``fmod``: a - trunc(a/b) * b. Of integers the same; by zero, zero."""
    if a.type.kind == "f":
        function = a.function
        found = _of_sizes(function.convert(magnitude(a), F64), function.convert(magnitude(b), F64))
        return signed_as(function.convert(found, a.type), a)
    none = b.equals(0) if a.type.kind == "u" else b.equals(0) | b.equals(-1)
    return where(none, a.like(0), a % where(none, b.like(1), b))


def floor_remainder(a: Value, b: Value) -> Value:
    """With the sign of b."""
    found = remainder(a, b)
    if a.type.kind == "u":
        return found
    other = (found < 0) ^ (b < 0)
    moved = where(found.differs(0) & other, found + b, found)
    if a.type.kind != "f":
        return moved
    return where(found.equals(0), signed_as(a.like(0), b), moved)


def _of_sizes(a: Value, b: Value) -> Value:
    """The remainder of numbers that are not negative (f64), as in a long division.

    With a = m * 2**i and b = d * 2**j, the remainder of m * 2**(i - j) by d: digits of the quotient are found in
    steps, as many as the largest difference of exponents needs.
    """
    function = a.function
    (m, i), (d, j) = _parts(a), _parts(b)
    less = a < b
    rest = function.variable(m)
    left = function.variable(where(less, i.like(0), i - j))
    steps = function.largest(left.value) // _STEP + 1
    with function.loop("digits", steps):
        moved = where(left.value > _STEP, left.value.like(_STEP), left.value)
        rest.value = _remainder(rest.value * power_of_two(moved, F64), d)
        left.value = left.value - moved
    found = where(less, a, scaled(rest.value, j.bits(format_of(a).whole)))
    return where(b.differs(0) & (a < inf) & b.equals(b), found, a.like(nan))


def _remainder(a: Value, b: Value) -> Value:
    """A - floor(a/b) * b: the quotient has few enough digits; it may be off by one, as the division rounds."""
    quotient = whole(a / b)
    product, missing = exact_product(quotient, b)
    found = (a - product) - missing
    return where(found < 0, found + b, found)


def _parts(x: Value) -> tuple[Value, Value]:
    """X = m * 2**e with m from 1 to below 2."""
    kind = format_of(x)
    lift = kind.digits + 2
    tiny = x < kind.normal
    bits = where(tiny, x * 2.0**lift, x).bits(kind.whole)
    exponent = (bits >> kind.digits).bits(I64) - where(tiny, x.function.constant(lift + kind.bias, I64), kind.bias)
    digits = bits & ((1 << kind.digits) - 1)
    return (digits | (kind.bias << kind.digits)).bits(x.type), exponent
