"""Hyperbolic functions and their inverses, of exponentials and logarithms."""

from __future__ import annotations

from math import log, nan

from tract_llvm.functions.coefficients import SINH
from tract_llvm.functions.exponential import half_exp
from tract_llvm.functions.floats import format_of, magnitude, polynomial, root, signed_as
from tract_llvm.functions.logarithm import log_plus_one
from tract_llvm.language.function import where
from tract_llvm.language.values import Value


def sinh(x: Value) -> Value:
    """(exp(x) - exp(-x)) / 2; up to 1 a polynomial, as the difference would lose digits. Within 1.7 units."""
    size = magnitude(x)
    half = half_exp(size)
    z = x * x
    near = size.times_plus(z * polynomial(z, SINH[x.type]), size)
    return signed_as(where(size < 1, near, half - 0.25 / half), x)


def cosh(x: Value) -> Value:
    """(exp(x) + exp(-x)) / 2. Within 1.5 units."""
    half = half_exp(magnitude(x))
    return half + 0.25 / half


def asinh(x: Value) -> Value:
    """log(x + sqrt(x*x + 1)), written with log(1 + y), y = x + x*x / (1 + sqrt(x*x + 1)). Within 1.9 units."""
    size = magnitude(x)
    square = size * size
    return signed_as(_log_plus_one(size, size + square / (1.0 + root(1.0 + square))), x)


def acosh(x: Value) -> Value:
    """log(x + sqrt(x*x - 1)), written with log(1 + y), y = t + sqrt(t * (2 + t)), t = x - 1. Within 2.5 units."""
    t = x - 1.0
    return where(x < 1, x.like(nan), _log_plus_one(x, t + root(t * (2.0 + t))))


def _log_plus_one(x: Value, y: Value) -> Value:
    """log(1 + y); where x is so large that its square is not needed, and may not exist, log(2*x)."""
    large = x > 2.0 ** (format_of(x).digits + 8)
    found = log_plus_one(where(large, x, y))
    return where(large, found + log(2), found)


def atanh(x: Value) -> Value:
    """log((1 + x) / (1 - x)) / 2, written with log(1 + y), y = 2x / (1 - x), of the magnitude. Within 2.1 units."""
    size = magnitude(x)
    return signed_as(log_plus_one((size + size) / (1.0 - size)) * 0.5, x)
