"""Integers times factors with a fixed point, as the kernels of TFLite round them.

Source: the arithmetic of gemmlowp, which the reference kernels of LiteRT are written in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops import binary
from tract_core.ops.expect import arity, broadcast_shapes, same_rank
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class Rounding(Enum):
    """How often a product is rounded.

    TWICE: the high half of twice the product, halves up, and then what is shifted out, halves away from zero. ONCE: all
    that is shifted out, halves up. SHORT: of wide sums; as ONCE, with a multiplier that is cut to 16 bits.
    """

    TWICE = "twice"
    ONCE = "once"
    SHORT = "short"


_TAKES: Final = {
    Rounding.TWICE: (DatumType.I32,),
    Rounding.ONCE: (DatumType.I32, DatumType.I64),
    Rounding.SHORT: (DatumType.I64,),
}
"""The types of what is rounded."""


@frozen
class FixedPointScale(TypedOp):
    """x * multiplier * 2**(shift - 31), as i32. Inputs: x, in i32, or i64 (not rounded twice); multiplier, shift: i32.

    Multipliers are not negative, shifts from -31 to 30; all inputs have one rank, and stretch. What does not fit in 32
    bits on the way is cut off, as it is there. ``shrinks``: whether every shift is below 0, which is faster.
    """

    by_element: ClassVar[bool] = True
    rounding: Rounding = Rounding.TWICE
    shrinks: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape, in i32. Raises FactError for other types, ranks or sizes that differ."""
        x, multiplier, shift = arity(self, inputs, 3)
        same_rank(self, inputs)
        takes, others = _TAKES[self.rounding], (multiplier.datum_type, shift.datum_type)
        if x.datum_type not in takes or others != (DatumType.I32, DatumType.I32):
            wanted = " or ".join(kind.short for kind in takes)
            raise FactError(f"FixedPointScale wants {wanted}, i32 and i32, found {x}, {multiplier} and {shift}")
        return (TypedFact(DatumType.I32, broadcast_shapes(self, [one.shape for one in inputs])),)


@frozen
class FixedPointSteps(TypedOp):
    """Sums in the steps of an output: scaled and rounded twice, plus ``zero``, within bounds.

    That is x * multiplier * 2**(shift - 31) first. ``low``, ``high``: the bounds, which lie in the type ``to``. Inputs:
    x, multiplier and shift, all in i32; they have one rank, and stretch. Shifts are from -22 to -1, and no x has more
    than 29 digits: nothing is cut off on the way.
    """

    by_element: ClassVar[bool] = True
    zero: int
    low: int
    high: int
    to: DatumType

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape, in the type ``to``. Raises FactError for other types, ranks or sizes that differ."""
        arity(self, inputs, 3)
        same_rank(self, inputs)
        if any(fact.datum_type is not DatumType.I32 for fact in inputs):
            raise FactError(f"FixedPointSteps wants i32, found {', '.join(map(str, inputs))}")
        return (TypedFact(self.to, broadcast_shapes(self, [one.shape for one in inputs])),)


SMALL_SUM: Final = 2**29
"""What sums of `FixedPointSteps` stay below, without their signs."""

SMALL_SHIFTS: Final = (-22, -1)
"""Its shifts: from, to."""


@ROWS.row(REFERENCE, FixedPointSteps)
def in_steps(op: FixedPointSteps, x: Array, multiplier: Array, shift: Array) -> Array:
    """Integer arithmetic on 64 bits"""
    steps = divided_by_power(doubled_high_half(x, multiplier), -shift) + op.zero
    return np.clip(steps, op.low, op.high).astype(op.to.numpy)


@ROWS.row(REFERENCE, FixedPointScale)
def reference(op: FixedPointScale, x: Array, multiplier: Array, shift: Array) -> Array:
    """Integer arithmetic on 64 bits."""
    if op.rounding is Rounding.SHORT:
        return _once(x, cut_multiplier(multiplier), 15 - shift.astype(np.int64))
    if op.rounding is Rounding.ONCE:
        return _once(x, multiplier.astype(np.int64), 31 - shift.astype(np.int64))
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return divided_by_power(doubled_high_half(np.left_shift(x, left), multiplier), right)


def doubled_high_half(x: Array, multiplier: Array) -> Array:
    """The high 32 bits of 2 * x * multiplier, both i32: halves up, saturated."""
    product = x.astype(np.int64) * multiplier.astype(np.int64)
    return np.minimum((product + (1 << 30)) >> 31, 2**31 - 1).astype(np.int32)


def divided_by_power(x: Array, exponent: Array) -> Array:
    """X / 2**exponent, i32: halves away from zero."""
    mask = (np.int64(1) << exponent.astype(np.int64)) - 1
    wide = x.astype(np.int64)
    threshold = (mask >> 1) + (wide < 0)
    return ((wide >> exponent) + ((wide & mask) > threshold)).astype(np.int32)


def cut_multiplier(multiplier: Array) -> Array:
    """To 16 bits, halves up, in 64 bits."""
    return np.where(multiplier < 0x7FFF0000, (multiplier.astype(np.int64) + (1 << 15)) >> 16, 0x7FFF)


def _once(x: Array, multiplier: Array, bits: Array) -> Array:
    """X * multiplier / 2**bits, halves up."""
    return ((x * multiplier + (np.int64(1) << (bits - 1))) >> bits).astype(np.int32)


@ROWS.row(COST, FixedPointScale, FixedPointSteps)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A product per element."""
    return {"FMA(I64)": outputs[0].shape.volume}


@ROWS.row(AXES, FixedPointScale, FixedPointSteps)
def axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """As for any operator on elements."""
    return binary.axes(binary.Add(), inputs, outputs)  # only the facts are looked at
