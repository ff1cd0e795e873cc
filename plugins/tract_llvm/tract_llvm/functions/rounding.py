"""Floats to integers, as floats: by an instruction, or by adding a number so large that no digits are left."""

from __future__ import annotations

from tract_llvm.functions.floats import format_of, magnitude, signed_as
from tract_llvm.language.function import where
from tract_llvm.language.values import Value


def whole(x: Value) -> Value:
    """The nearest integer, halves to the even one."""
    if x.function.isa.rounds:
        return x.function.intrinsic("rint", x)
    size, end = magnitude(x), 2.0 ** format_of(x).digits
    return where(size < end, signed_as((size + end) - end, x), x)


def floor(x: Value) -> Value:
    """The greatest integer that is not above x."""
    if x.function.isa.rounds:
        return x.function.intrinsic("floor", x)
    near = whole(x)
    return signed_as(where(near > x, near - 1.0, near), x)


def ceil(x: Value) -> Value:
    """The least integer that is not below x."""
    return -floor(-x)


def trunc(x: Value) -> Value:
    """The integer next to x on the side of zero."""
    return signed_as(floor(magnitude(x)), x)
