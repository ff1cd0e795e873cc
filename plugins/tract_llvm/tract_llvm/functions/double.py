"""Sums of two floats that stand for one number of twice the digits (Dekker 1971, Knuth)."""

from __future__ import annotations

from tract_llvm.functions.floats import format_of
from tract_llvm.language.values import Value

Double = tuple[Value, Value]
"""The number, and what is missing to it."""


def ordered_sum(a: Value, b: Value) -> Double:
    """The sum, exactly, where ``a`` is 0 or its exponent is at least that of ``b``."""
    total = a + b
    return total, b - (total - a)


def exact_sum(a: Value, b: Value) -> Double:
    """The sum, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def exact_product(a: Value, b: Value) -> Double:
    """The product, exactly, where it does not come near the ends of the type."""
    product = a * b
    if a.function.isa.fma:
        return product, a.function.fma(a, b, -product)
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    rest = (a_high * b_high - product) + a_high * b_low + a_low * b_high
    return product, rest + a_low * b_low


def halves(x: Value) -> Double:
    """The upper half of the digits, and the lower ones, by their bits."""
    kind = format_of(x)
    low = (kind.digits + 2) // 2
    high = (x.bits(kind.whole) & ~((1 << low) - 1) & ((1 << x.type.bits) - 1)).bits(x.type)
    return high, x - high
