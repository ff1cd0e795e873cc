"""What is inside a float, and what the functions of this package share."""

from __future__ import annotations

from collections.abc import Sequence
from math import e, log2
from struct import pack, unpack
from typing import Final

from tract_core.frozen import frozen
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, F64, I32, I64, U32, U64, ElementType
from tract_llvm.language.values import Value


@frozen
class Format:
    """How floats of a type are made: a sign, an exponent plus ``bias``, and ``digits`` bits behind the point.

    ``whole``, ``signed``: the integers of that width. ``magic``: a float whose unit in the last place is 1, and stays
    so when a whole number is added that is small beside it.
    """

    whole: ElementType
    signed: ElementType
    digits: int
    bias: int

    @property
    def magic(self) -> float:
        """3/2 of the first number whose digits end at the point."""
        return 1.5 * 2.0**self.digits

    @property
    def magic_bits(self) -> int:
        """The bits of `magic`."""
        return ((self.bias + self.digits) << self.digits) | (1 << (self.digits - 1))

    @property
    def normal(self) -> float:
        """The least number that is not subnormal."""
        return 2.0 ** (1 - self.bias)


_FORMATS: Final = {F32: Format(U32, I32, 23, 127), F64: Format(U64, I64, 52, 1023)}


def format_of(x: Value) -> Format:
    """How the floats of a value are made."""
    return _FORMATS[x.type]


def magnitude(x: Value) -> Value:
    """|x|"""
    return x.function.intrinsic("fabs", x)


def signed_as(x: Value, sign: Value) -> Value:
    """``x`` with the sign of another number."""
    return x.function.intrinsic("copysign", x, sign)


def root(x: Value) -> Value:
    """The square root."""
    return x.function.intrinsic("sqrt", x)


def at_most(x: Value, end: float) -> Value:
    """``x``, or what is not to be exceeded; not-a-number stays."""
    return where(x > end, x.like(end), x)


def at_least(x: Value, end: float) -> Value:
    """``x``, or what is not to be fallen below; not-a-number stays."""
    return where(x < end, x.like(end), x)


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of coefficients times powers of x, the constant one first, by Horner's rule."""
    total = x.like(coefficients[-1])
    for one in coefficients[-2::-1]:
        total = total.times_plus(x, one)
    return total


def nearest(x: Value, factor: float = 1.0) -> tuple[Value, Value]:
    """The integer that is nearest to ``factor * x``: as a float, and in the lower bits of an unsigned integer.

    For numbers of less than half the digits that the type has. Adding a float without a fraction cuts off the others.
    """
    kind = format_of(x)
    moved = x.times_plus(factor, kind.magic) if factor != 1 else x + kind.magic
    return moved - kind.magic, moved.bits(kind.whole) - kind.magic_bits


def power_of_two(exponent: Value, type_: ElementType) -> Value:
    """2**exponent, where it is a normal number."""
    kind = _FORMATS[type_]
    return ((exponent + kind.bias) << kind.digits).bits(type_)


def scaled(x: Value, exponent: Value) -> Value:
    """X * 2**exponent, rounded once: in two steps, as the power may be no number of the type when the product is."""
    signed, function = exponent.bits(format_of(x).signed), x.function
    found = function.scaled(x, function.convert(signed, x.type))
    if found is not None:
        return found
    half = signed >> 1
    return x * power_of_two(half, x.type) * power_of_two(signed - half, x.type)


def as_float(small: Value, type_: ElementType) -> Value:
    """A small unsigned integer as a float of the same width."""
    kind = _FORMATS[type_]
    units = 2.0**kind.digits
    return (small | ((kind.bias + kind.digits) << kind.digits)).bits(type_) - units


def decomposed(x: Value) -> tuple[Value, Value]:
    """A positive number as m * 2**e: m between sqrt(1/2) and sqrt(2), and e as a float."""
    kind = format_of(x)
    lift = kind.digits + 2
    tiny = x < kind.normal
    bits = where(tiny, x * 2.0**lift, x).bits(kind.whole)
    lowest = _bits_of_root_of_half(x.type)
    moved = bits + ((kind.bias << kind.digits) - lowest)
    exponent = as_float(moved >> kind.digits, x.type) - where(tiny, x.like(kind.bias + lift), x.like(kind.bias))
    return ((moved & ((1 << kind.digits) - 1)) + lowest).bits(x.type), exponent


def _bits_of_root_of_half(type_: ElementType) -> int:
    letter, number = ("f", "I") if type_ is F32 else ("d", "Q")
    return int(unpack(number, pack(letter, 0.5**0.5))[0])


LOG2_E: Final = log2(e)
"""log2(e)"""
