"""One element of integers times factors with a fixed point."""

from __future__ import annotations

from tract_llvm.elements.expressions import elements
from tract_llvm.language.function import where
from tract_llvm.language.types import I32, I64
from tract_llvm.language.values import Value

from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite_only.fixed_point import FixedPointScale, Rounding

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
    left, right = where(shift > 0, shift, shift.like(0)), where(shift < 0, 0 - shift, shift.like(0))
    return _divided(_doubled_high_half(x << left, multiplier), right)


def _doubled_high_half(x: Value, multiplier: Value) -> Value:
    """Halves up."""
    convert = x.function.convert
    return convert((convert(x, I64) * convert(multiplier, I64) + (1 << 30)) >> 31, I32)


def _divided(x: Value, exponent: Value) -> Value:
    """Halves away from zero."""
    mask = (x.like(1) << exponent) - 1
    threshold = (mask >> 1) - (x >> 31)
    return (x >> exponent) + where((x & mask) > threshold, x.like(1), x.like(0))
