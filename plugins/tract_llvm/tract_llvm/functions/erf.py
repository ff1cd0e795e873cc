"""The error function, and the normal distribution."""

from __future__ import annotations

from typing import Final

from tract_llvm.functions.coefficients import ERF, ERFC, TAIL
from tract_llvm.functions.exponential import exp_of_negative, less_one
from tract_llvm.functions.floats import at_most, magnitude, polynomial, power_of_two, signed_as
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, F64
from tract_llvm.language.values import Value

_IS_ONE: Final = {F32: 4.0, F64: 6.0}
"""From here on, erf is 1."""


def erf(x: Value) -> Value:
    """Up to 1 a polynomial; behind that 1 - exp(-x * polynomial(x)). Within 1.5 units."""
    size = magnitude(x)
    z = x * x
    near = size.times_plus(polynomial(z, ERF[x.type]), size)
    far = at_most(size, _IS_ONE[x.type])
    p, n = less_one(-(far * polynomial(far, ERFC[x.type])))
    power = power_of_two(n, x.type)
    return signed_as(where(size < 1, near, 1.0 - power.times_plus(p, power)), x)


def normal(x: Value) -> Value:
    """The share of normally distributed numbers that are below x. Within a unit of 1."""
    tail = exp_of_negative(polynomial(magnitude(x), TAIL[x.type]))
    return where(x > 0, 1.0 - tail, tail)
