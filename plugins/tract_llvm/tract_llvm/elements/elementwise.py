"""One element of the operators that look at one element."""

from __future__ import annotations

from tract_core.data import QuantizedType
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import (
    Abs,
    BitNot,
    Ceil,
    Floor,
    HardSwish,
    IsInf,
    IsNan,
    LeakyRelu,
    Neg,
    Not,
    Recip,
    Round,
    RoundHalfToEven,
    Rsqrt,
    Sign,
    Sqrt,
    Square,
)
from tract_core.plugins.tables import Rows
from tract_llvm.elements.expressions import CARRIED, QUANTIZED, elements
from tract_llvm.elements.quantize import to_steps
from tract_llvm.functions import rounding
from tract_llvm.language.function import where
from tract_llvm.language.values import Value

ROWS = Rows()


@elements(ROWS, "fiu", Abs)
def magnitude(op: Abs, x: Value) -> Value:
    """|x|; the least integer has none, and stays."""
    return x.function.intrinsic("fabs", x).with_digits_of(x) if x.type.kind == "f" else where(x < 0, -x, x)


@elements(ROWS, "fiu", Neg)
def negative(op: Neg, x: Value) -> Value:
    """-x"""
    return -x


@elements(ROWS, "fiu", Square)
def square(op: Square, x: Value) -> Value:
    """The square."""
    return x * x


@elements(ROWS, "fiu", Sign)
def sign(op: Sign, x: Value) -> Value:
    """-1, 0 or 1; not-a-number stays."""
    found = where(x > 0, x.like(1), where(x < 0, x.like(-1), x.like(0)))
    return where(x.differs(x), x, found) if x.type.kind == "f" else found


@elements(ROWS, "f", Sqrt)
def square_root(op: Sqrt, x: Value) -> Value:
    """sqrt(x)"""
    return x.function.intrinsic("sqrt", x)


@elements(ROWS, "f", Recip)
def reciprocal(op: Recip, x: Value) -> Value:
    """1 / x"""
    return 1.0 / x


@elements(ROWS, "f", Rsqrt)
def reciprocal_square_root(op: Rsqrt, x: Value) -> Value:
    """1 / sqrt(x)"""
    return 1.0 / x.function.intrinsic("sqrt", x)


@elements(ROWS, "f", Floor)
def floor(op: Floor, x: Value) -> Value:
    """The greatest integer that is not above x."""
    return rounding.floor(x)


@elements(ROWS, "f", Ceil)
def ceil(op: Ceil, x: Value) -> Value:
    """The least integer that is not below x."""
    return rounding.ceil(x)


@elements(ROWS, "f", Round)
def round_half_away(op: Round, x: Value) -> Value:
    """The nearest integer, halves away from zero."""
    function = x.function
    whole = rounding.trunc(x)
    far = function.intrinsic("fabs", x - whole) >= 0.5
    return where(far, whole + function.intrinsic("copysign", x.like(1), x), whole)


@elements(ROWS, "f", RoundHalfToEven)
def round_half_to_even(op: RoundHalfToEven, x: Value) -> Value:
    """The nearest integer, halves to the even one."""
    return rounding.whole(x)


@elements(ROWS, "f", LeakyRelu)
def leaky_relu(op: LeakyRelu, x: Value) -> Value:
    """The same, or alpha * x below zero"""
    return where(x >= 0, x, x * op.alpha)


@elements(ROWS, "f", HardSwish)
def hard_swish(op: HardSwish, x: Value) -> Value:
    """Of x, x * clip(x / 6 + 1/2, 0, 1)"""
    ramp = x / 6.0 + 0.5
    low = where(ramp < 0, x.like(0), ramp)
    return x * where(low > 1, x.like(1), low)


@elements(ROWS, "f", IsNan)
def is_nan(op: IsNan, x: Value) -> Value:
    """Whether x is not a number."""
    return x.differs(x)


@elements(ROWS, "f", IsInf)
def is_inf(op: IsInf, x: Value) -> Value:
    """Infinite, and of a sign asked for."""
    above = x.equals(float("inf")) if op.detect_positive else None
    below = x.equals(float("-inf")) if op.detect_negative else None
    if above is not None and below is not None:
        return above | below
    return above or below or x.equals(0) & x.differs(0)


@elements(ROWS, "b", Not)
def logical_not(op: Not, x: Value) -> Value:
    """Not x"""
    return ~x


@elements(ROWS, "iu", BitNot)
def bit_not(op: BitNot, x: Value) -> Value:
    """Every bit inverted."""
    return ~x


@elements(ROWS, "fiub" + CARRIED + QUANTIZED, Cast)
def cast(op: Cast, x: Value) -> Value:
    """Conversion to the type of the result, which is done for every result; to a quantised one, by its parameters."""
    return to_steps(x, op.to) if isinstance(op.to, QuantizedType) else x
