"""One element of integers times factors with a fixed point."""

from __future__ import annotations

from tract_llvm.elements.expressions import elements
from tract_llvm.language.function import where
from tract_llvm.language.types import I32, I64, element_named
from tract_llvm.language.values import Value, matched

from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite_only.fixed_point import FixedPointScale, FixedPointSteps, Rounding
from tract_tensorflow.tflite_only.fixed_point_sum import FixedPointSum, Term

ROWS = Rows()


@elements(ROWS, "i", FixedPointScale)
def fixed_point_scale(op: FixedPointScale, x: Value, multiplier: Value, shift: Value) -> Value:
    """In 64 bits, which hold the product."""
    convert = x.function.convert
    if op.rounding is not Rounding.TWICE:
        wide, bits = convert(multiplier, I64), 31 - convert(shift, I64)
        if op.rounding is Rounding.SHORT:
            wide, bits = where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, wide.like(0x7FFF)), bits - 16
        return convert((convert(x, I64) * wide + (wide.like(1) << (bits - 1))) >> bits, I32)
    if op.shrinks:
        found = _doubled_high_half(x, multiplier) + (x >> 31)  # halves below zero go down then
        return ((found >> (-1 - shift)) + 1) >> 1
    left, right = where(shift > 0, shift, shift.like(0)), where(shift < 0, 0 - shift, shift.like(0))
    return _divided(_doubled_high_half(x << left, multiplier), right)


@elements(ROWS, "i", FixedPointSteps)
def fixed_point_steps(op: FixedPointSteps, x: Value, multiplier: Value, shift: Value) -> Value:
    """What the zero point adds is added before the last bit is shifted out.

    Halves below zero go down, which is not seen where nothing below the zero point is left.
    """
    return _in_steps(op, x, multiplier, shift)


def _in_steps(op: FixedPointSteps, x: Value, multiplier: Value, shift: Value) -> Value:
    found = _doubled_high_half(x, multiplier)
    if op.low < op.zero:
        found = found + (x >> 31)
    steps = ((found >> (-1 - shift)) + (2 * op.zero + 1)) >> 1
    bounded = x.function.smaller(where(steps < op.low, steps.like(op.low), steps), op.high)
    return x.function.convert(bounded, element_named(op.to.short))


@elements(ROWS, "iu", FixedPointSum)
def fixed_point_sum(op: FixedPointSum, a: Value, b: Value) -> Value:
    """Both in common steps first, with the numbers of the operator in the code."""
    first, second = (_in_common_steps(x, term, op.left) for x, term in zip((a, b), op.terms, strict=True))
    total = first + second
    return _in_steps(op.steps, total, total.like(op.multiplier), total.like(op.shift))


def _in_common_steps(x: Value, term: Term, left: int) -> Value:
    distance = (x.function.convert(x, I32) - term.zero) * (term.sign << left)
    if term.multiplier == 1 << 30 and left:  # a half, of an even number
        return _halves_away(distance >> 1, distance, term.right)
    return _halves_away(_doubled_high_half(distance, distance.like(term.multiplier)), distance, term.right)


def _halves_away(x: Value, sign: Value, right: int) -> Value:
    """A number that has the sign of another one, divided by a power of two."""
    return (((x + (sign >> 31)) >> (right - 1)) + 1) >> 1 if right else x


def _doubled_high_half(x: Value, multiplier: Value) -> Value:
    """Halves up."""
    x, multiplier = matched(x, multiplier)
    if x.function.isa.architecture == "x86_64" and x.lanes >= 4:
        return _of_pairs(x, multiplier)
    convert = x.function.convert
    return convert((convert(x, I64) * convert(multiplier, I64) + (1 << 30)) >> 31, I32)


def _of_pairs(x: Value, multiplier: Value) -> Value:
    """The same, where an instruction multiplies every other lane: those at even places, and then those at odd ones."""
    a, b = _pairs(x), _pairs(multiplier)
    even = (((a << 32) >> 32) * ((b << 32) >> 32) + (1 << 30)) >> 31
    odd = ((a >> 32) * (b >> 32) + (1 << 30)) << 1
    places = [place + x.lanes * (place % 2) for place in range(x.lanes)]
    return x.function.shuffled(_lanes_of(even), _lanes_of(odd), places)


def _pairs(x: Value) -> Value:
    """Two lanes of 32 bits as one of 64, the first in its low half."""
    one = x.function.constant(0, I64, x.lanes // 2)
    return Value(x.function, x.function.builder.bitcast(x.ir, one.ir.type), I64, one.lanes)


def _lanes_of(x: Value) -> Value:
    """The reverse of `_pairs`."""
    one = x.function.constant(0, I32, x.lanes * 2)
    return Value(x.function, x.function.builder.bitcast(x.ir, one.ir.type), I32, one.lanes)


def _divided(x: Value, exponent: Value) -> Value:
    """Halves away from zero."""
    mask = (x.like(1) << exponent) - 1
    threshold = (mask >> 1) - (x >> 31)
    return (x >> exponent) + where((x & mask) > threshold, x.like(1), x.like(0))
