"""One element of the operators of quantised networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_core.data import DatumType, QuantizedType
from tract_core.ops.quantize import DequantizeLinear, OffsetI8asU8, OffsetU8asI8, QScale, QuantizeLinear, Scale, Ties
from tract_core.ops.rounding import greatest, limits
from tract_core.plugins.tables import Rows
from tract_llvm.elements.expressions import elements
from tract_llvm.functions.rounding import whole
from tract_llvm.language.convert import cut_off
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, F64, I8, I32, I64, U8, U32, element_type
from tract_llvm.language.values import Value

ROWS = Rows()


def quantize(op: QuantizeLinear, x: Value, scale: Value, zero: Value) -> Value:
    """round(x / scale) + zero, halves to even: in f32, in f64 for i32 and f64. It stops at the ends of the type.

    A narrow float is x / scale, bounded by the ends of its type where the operator says so.
    """
    convert = x.function.convert
    compute = F64 if x.type.kind != "f" or x.type is F64 else F32
    quotient = convert(x, compute) / convert(scale, compute)
    if compute is F32 and op.to in _SMALL:
        return nearest(where(quotient.differs(quotient), quotient.like(0), quotient), zero, op.to)
    if op.to.is_integer():
        return _steps(quotient, convert(zero, compute if zero.type.bits <= _NARROW else F64), op.to)
    return within(quotient, -greatest(op.to), greatest(op.to)) if op.saturate else quotient


def nearest(x: Value, zero: Value, to: DatumType) -> Value:
    """The nearest integer to an f32 that is a number, halves to even, plus a zero point, stopped at the ends of a type.

    Next to `_WHOLE`, floats are integers, which their bits count; further away, their bits still are in their order.
    """
    low, high = limits(to)
    far, bits = x.function.convert(zero, I32), (x + _WHOLE).bits(I32)
    begin = far.like(_BITS_OF_WHOLE) - far
    found = where(bits < begin + low, begin + low, bits) - begin
    found = found if low else found.bits(U32)  # which processors cut off in the instruction that narrows
    return where(found > high, found.like(high), found)


def to_steps(x: Value, to: QuantizedType) -> Value:
    """The integers that stand for numbers: x / scale, rounded halves to even in f64, plus the zero point."""
    quotient = x.function.convert(x, F64) / to.scale
    return _steps(quotient, quotient.like(to.zero_point), to.storage)


def _steps(quotient: Value, zero: Value, to: DatumType) -> Value:
    """The nearest integers plus a zero point, whose type holds both; not-a-number counts as 0."""
    steps = whole(quotient)
    steps = where(steps.differs(steps), steps.like(0), steps)
    found, element = zero.function.convert(steps, zero.type) + zero, element_type(to)
    if element is None or (element.bits > _NARROW and not element.is_carried):
        return found
    bounded = within(found, *limits(to))
    return bounded if element.is_carried else cut_off(bounded, I32)


def within(x: Value, low: float, high: float) -> Value:
    """Bounded; not-a-number stays."""
    bounded = where(x < low, x.like(low), x)
    return where(bounded > high, x.like(high), bounded)


def dequantize(op: DequantizeLinear, x: Value, scale: Value, zero: Value) -> Value:
    """(x - zero) * scale: the difference exactly, the product in f32, or in f64 where scale or result are f64.

    Narrow floats are subtracted in f32.
    """
    convert = x.function.convert
    exact = F32 if x.type.kind == "f" else I32 if x.type.bits <= _NARROW else I64
    compute = F64 if scale.type is F64 or op.to is DatumType.F64 else F32
    centred = convert(x, exact) - convert(zero, exact)
    return convert(centred, compute) * convert(scale, compute)


_WHOLE: Final = 1.5 * 2.0**23
"""In the middle of the floats that are integers and follow each other."""
_BITS_OF_WHOLE: Final = 0x4B400000

_SMALL: Final = (DatumType.U8, DatumType.I8, DatumType.U16, DatumType.I16)
"""Types of integers that are much smaller than that."""

_NARROW: Final = 16
"""Bits of integers whose sums an f32 holds, and an i32 all differences."""

_ENDS: Final = (-(2**31), 2**31 - 1)
_POINT: Final = 31
"""Bits behind the point of a multiplier."""


@elements(ROWS, "fiu", Scale)
def scale(op: Scale, factor: Value, x: Value) -> Value:
    """The nearest integer to factor * x, halves to the even one; the conversion stops at the ends of the type."""
    convert = x.function.convert
    return convert(whole(convert(factor, F64) * convert(x, F64)), x.type)


_GOES_UP: Final[dict[Ties, Callable[[Value], Value]]] = {
    Ties.ZERO: lambda low: low < 0,
    Ties.AWAY: lambda low: low >= 0,
    Ties.MINUS_INF: lambda low: low.differs(low),
    Ties.PLUS_INF: lambda low: low.equals(low),
    Ties.EVEN: lambda low: (low & 1).differs(0),
    Ties.ODD: lambda low: (low & 1).equals(0),
}
"""For the lower one of the two nearest integers, whether a tie goes to the upper one."""


@elements(ROWS, "i", QScale)
def q_scale(op: QScale, x: Value) -> Value:
    """The product in 64 bits, which hold it, shifted, rounded, and stopped at the ends of an i32."""
    product = x.function.convert(x, I64) * op.multiplier
    bits = _POINT + op.shift
    if bits > 2 * _POINT:
        return x.like(0)
    if bits <= 0:
        found = _within_i32(product) << min(-bits, _POINT)
    else:
        low = product >> bits
        rest, half = product - (low << bits), 1 << (bits - 1)
        up = (rest > half) | (rest.equals(half) & _GOES_UP[op.ties](low))
        found = where(up, low + 1, low)
    return x.function.convert(_within_i32(found), I32)


def _within_i32(x: Value) -> Value:
    low, high = _ENDS
    bounded = where(x < low, x.like(low), x)
    return where(bounded > high, x.like(high), bounded)


@elements(ROWS, "i", OffsetI8asU8)
def offset_to_u8(op: OffsetI8asU8, x: Value) -> Value:
    """The top bit flipped, which adds 128."""
    return x.bits(U8) ^ 128


@elements(ROWS, "u", OffsetU8asI8)
def offset_to_i8(op: OffsetU8asI8, x: Value) -> Value:
    """The top bit flipped, which subtracts 128."""
    return (x ^ 128).bits(I8)
