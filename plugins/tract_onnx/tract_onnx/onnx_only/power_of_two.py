"""Numbers as powers of two: the scales of microscaling formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

_BIAS: Final = 127
_GREATEST: Final = 254
_NAN: Final = 255


class PowerRounding(Enum):
    """Which power of two a number between two becomes; NEAREST takes the upper one from halfway on."""

    UP = "up"
    DOWN = "down"
    NEAREST = "nearest"


@frozen
class ToPowerOfTwo(TypedOp):
    """Every element as a power of two, of the type f8e8m0fnu, whose 8 bits are the exponent and 127.

    ``saturate``: what is too small or too large, 0 and infinity included, becomes the smallest or the largest power;
    otherwise it becomes NaN, as negative numbers do, of which the standard says nothing.
    """

    rounding: PowerRounding = PowerRounding.UP
    saturate: bool = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape. Raises FactError for what is no real number."""
        (x,) = arity(self, inputs, 1)
        kind = x.datum_type.storage
        if x.datum_type.is_quantized() or not (kind.is_float() or kind.is_integer() or kind.is_bool()):
            raise FactError(f"ToPowerOfTwo wants real numbers, found {x}")
        return (x.with_type(DatumType.F8E8M0FNU),)


_STEPS_UP: Final[Mapping[PowerRounding, Callable[[Array], Array]]] = {
    PowerRounding.UP: lambda fraction: fraction > 1,
    PowerRounding.DOWN: lambda fraction: fraction >= 2,
    PowerRounding.NEAREST: lambda fraction: fraction >= 1.5,
}
"""Whether a number, divided by the power of two below it, goes to the power above."""


@ROWS.row(REFERENCE, ToPowerOfTwo)
def reference(op: ToPowerOfTwo, x: Array) -> Array:
    """The exponent of numpy.frexp, which gives fractions from 0.5 on, rounded"""
    fraction, exponent = np.frexp(x.astype(np.float64))
    code = exponent - 1 + _STEPS_UP[op.rounding](2 * fraction) + _BIAS
    code = np.where(np.isposinf(fraction), _NAN, np.where(fraction == 0, -1, code))
    inside = (code >= 0) & (code <= _GREATEST)
    code = np.clip(code, 0, _GREATEST) if op.saturate else np.where(inside, code, _NAN)
    code = np.where(np.isnan(fraction) | (fraction < 0), _NAN, code)
    return code.astype(np.uint8).view(DatumType.F8E8M0FNU.numpy)


@ROWS.row(COST, ToPowerOfTwo)
def cost(op: ToPowerOfTwo, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention, as conversions are."""
    return {}


@ROWS.row(AXES, ToPowerOfTwo)
def axes(op: ToPowerOfTwo, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
