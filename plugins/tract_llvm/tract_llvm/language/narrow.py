"""Floats that no instruction knows, by their bits: what they are as f32, and the nearest one to an f32."""

from __future__ import annotations

from typing import Final

from tract_core.frozen import frozen
from tract_llvm.language.types import F32, U16, U32
from tract_llvm.language.values import Value

_DIGITS: Final = 23
_BIAS: Final = 127
_SIGN: Final = 1 << 31
_INFINITE: Final = 0xFF << _DIGITS
_QUIET: Final = _INFINITE | 1 << (_DIGITS - 1)
"""The bits of an f32: how many digits are behind the point, 2**0 in its exponent, the sign, infinity, not-a-number."""


@frozen
class NarrowFloat:
    """A sign, an exponent and digits, as numbers of IEEE 754 have them, but for what stands at the upper end.

    ``bits``: all of them; ``digits``: those behind the point. ``bias``: what stands for 2**0. ``greatest``: the bits of
    the greatest number. ``beyond``: those of what is further from zero; ``nan``: those of not-a-number, both without
    their sign. ``one_zero``: whether -0 does not exist, and its bits are not-a-number, with no other sign.
    """

    bits: int
    digits: int
    bias: int
    greatest: int
    beyond: int
    nan: int
    one_zero: bool = False

    def widened(self, code: Value) -> Value:
        """The f32 of some bits, given as u32."""
        select, sign = code.function.select, 1 << (self.bits - 1)
        size = code & (sign - 1)
        found = self._exact(size).bits(U32)
        if self.one_zero:
            return select(code.equals(sign), code.like(_QUIET), found | self._sign(code)).bits(F32)
        if self.greatest < sign - 1:
            end = code.like(_QUIET)
            if self.beyond != self.nan:
                end = select(size.equals(self.beyond), code.like(_INFINITE), end)
            found = select(size > self.greatest, end, found)
        return (found | self._sign(code)).bits(F32)

    def _exact(self, size: Value) -> Value:
        """The f32 of bits without their sign, where these are of a number.

        In the place of an f32's bits they are the number times a power of two, also where it is subnormal. Vectors that
        have no such numbers get it as what is between 1 and 2, times the least normal one, less that.
        """
        at_f32, lowest = size << (_DIGITS - self.digits), _BIAS + 1 - self.bias
        if not size.function.isa.flushes:
            return at_f32.bits(F32) * 2.0 ** (_BIAS - self.bias)
        subnormal = (at_f32 | (lowest << _DIGITS)).bits(F32) - 2.0 ** (1 - self.bias)
        normal = (at_f32 + ((lowest - 1) << _DIGITS)).bits(F32)
        return size.function.select(size < 1 << self.digits, subnormal, normal)

    def _sign(self, code: Value) -> Value:
        return (code & (1 << (self.bits - 1))) << (32 - self.bits)

    def narrowed(self, x: Value) -> Value:
        """The bits, as u32, of the number that is nearest to an f32, halves to even."""
        select, sign = x.function.select, (x.bits(U32) & _SIGN) >> (32 - self.bits)
        size = (x.bits(U32) & (_SIGN - 1)).bits(F32)
        limit = 2.0 ** ((self.greatest >> self.digits) - self.bias + 2)
        size = select(size < limit, size, size.like(limit))
        lowest = _BIAS + 1 - self.bias
        exponent = size.bits(U32) >> _DIGITS
        exponent = select(exponent > lowest, exponent, exponent.like(lowest))
        unit = ((exponent.like(2 * _BIAS + self.digits) - exponent) << _DIGITS).bits(F32)
        # Next to 2**23 an f32 has no fraction: the sum is rounded to a whole number of units.
        units = (size * unit + 2.0**_DIGITS).bits(U32) & ((1 << _DIGITS) - 1)
        code = ((exponent - lowest) << self.digits) + units
        code = select(code > self.greatest, code.like(self.beyond), code)
        code = select(x.differs(x), code.like(self.nan), code)
        if self.one_zero:
            return select(code.equals(0) | code.equals(self.nan), code, code | sign)
        return code ^ sign


@frozen
class BrainFloat:
    """The upper half of an f32. ``bits``: all of its own."""

    bits: int = 16

    def widened(self, code: Value) -> Value:
        """The f32 of some bits, given as u32."""
        return (code << self.bits).bits(F32)

    def narrowed(self, x: Value) -> Value:
        """The bits, as u32, of the nearest one, halves to even; not-a-number stays one."""
        quiet = (x.bits(U32) >> self.bits) | 0x40
        return x.function.select(x.differs(x), quiet, self._nearest(x) >> self.bits)

    def shortened(self, x: Value) -> Value:
        """The nearest one as an f32, of what was computed of such numbers.

        Where it is not a number, it has the bits of one of these, or those of the processor: nothing is rounded then.
        Where it may have any (`Isa.any_nan`), rounding could make a number of it, so that it is asked.
        """
        if x.function.isa.any_nan:
            return (self.narrowed(x) << self.bits).bits(F32)
        return self._nearest(x).bits(F32)

    def _nearest(self, x: Value) -> Value:
        """The bits of the nearest one to a number, as an f32: with half of its last unit more, and cut off there.

        In the middle between two, the even one is wanted. What lies there has nothing left below with that half, and
        loses the last bit of what is kept; that is an operation less where comparing gives vectors. Else it gets just
        less than that half, and one below where the last bit is set.
        """
        code, upper, half = x.bits(U32), 0xFFFF << self.bits, 1 << (self.bits - 1)
        if x.lanes and not x.function.isa.compares_to_masks:
            raised = code + half
            below = raised.bits(U16)
            middles = x.function.select(below.equals(0), below.like(0xFFFF), 0).bits(U32)
            return raised & (middles.like(upper) - middles)
        return ((code | ((code >> self.bits) & 1)) + (half - 1)) & upper


@frozen
class PowerOfTwo:
    """An exponent alone: the powers of two from 2**-127 on; the last one of all bits is not-a-number."""

    bits: int = 8

    def widened(self, code: Value) -> Value:
        """The f32 of some bits, given as u32."""
        select = code.function.select
        found = select(code.equals(0), code.like(1 << (_DIGITS - 1)), code << _DIGITS)
        return select(code.equals(0xFF), code.like(_QUIET), found).bits(F32)

    def narrowed(self, x: Value) -> Value:
        """The bits, as u32, of the nearest one, halves to the upper one, above 0 and below 2**-126 the next one up.

        Not-a-number where x is 0, negative, or too large.
        """
        code, select, smallest = x.bits(U32), x.function.select, 1 << (_DIGITS - 1)
        subnormal = select(code > smallest, code.like(1), code.like(0))
        found = select(code < 1 << _DIGITS, subnormal, (code + smallest) >> _DIGITS)
        return select((x > 0) & (found < 0xFF), found, code.like(0xFF))


Form = NarrowFloat | BrainFloat | PowerOfTwo

HALF: Final = NarrowFloat(16, 10, 15, greatest=0x7BFF, beyond=0x7C00, nan=0x7E00)
"""An f16, for instruction sets that convert none."""

NARROW: Final[dict[str, Form]] = {
    "bf16": BrainFloat(),
    "f4e2m1fn": NarrowFloat(4, 1, 1, greatest=7, beyond=7, nan=8),
    "f8e4m3fn": NarrowFloat(8, 3, 7, greatest=0x7E, beyond=0x7F, nan=0x7F),
    "f8e4m3fnuz": NarrowFloat(8, 3, 8, greatest=0x7F, beyond=0x80, nan=0x80, one_zero=True),
    "f8e5m2": NarrowFloat(8, 2, 15, greatest=0x7B, beyond=0x7C, nan=0x7E),
    "f8e5m2fnuz": NarrowFloat(8, 2, 16, greatest=0x7F, beyond=0x80, nan=0x80, one_zero=True),
    "f8e8m0fnu": PowerOfTwo(),
}
"""The forms of types that no instruction set converts."""
