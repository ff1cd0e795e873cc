"""log, and log(1 + x).

x = m * 2**k with m between sqrt(1/2) and sqrt(2); with f = m - 1 and s = f / (2 + f), log(m) = log((1+s) / (1-s)) is
odd in s: f - f*f/2 + s * (f*f/2 + s*s * polynomial(s*s)), so that f, which is exact, carries most of the result.
"""

from __future__ import annotations

from math import inf, nan

from tract_llvm.functions.coefficients import LN2, LOG
from tract_llvm.functions.double import ordered_sum
from tract_llvm.functions.floats import decomposed, polynomial
from tract_llvm.language.function import where
from tract_llvm.language.values import Value


def _of_parts(m: Value, k: Value, missing: Value | None = None) -> Value:
    """log(m * 2**k) + missing"""
    high, low = LN2[m.type]
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = f * f * 0.5
    rest = s * z.times_plus(polynomial(z, LOG[m.type]), half)
    rest = k.times_plus(low, rest if missing is None else rest + missing)
    return k.times_plus(high, f - (half - rest))


def log(x: Value) -> Value:
    """The natural logarithm; not-a-number below zero. Within 0.85 units."""
    found = _of_parts(*decomposed(x))
    found = where(x < inf, found, x)
    return where(x > 0, found, where(x.equals(0), x.like(-inf), x.like(nan)))


def log_plus_one(x: Value) -> Value:
    """log(1 + x), also where 1 + x loses digits of x; not-a-number below -1. Of -0.0 it is 0."""
    smaller = x < 1
    u, missing = ordered_sum(where(smaller, x.like(1), x), where(smaller, x, x.like(1)))
    m, k = decomposed(u)
    found = where(x < inf, _of_parts(m, k, missing / u), x)
    return where(u > 0, found, where(u.equals(0), x.like(-inf), x.like(nan)))
