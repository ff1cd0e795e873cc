"""Running sums, and whatever else is joined element by element along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import DType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, float_type, wide
from tract_core.ops.extremes import LARGEST, SMALLEST
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Running(TypedOp):
    """Base of the family: along ``axis``, what becomes of the elements up to each one, joined one after the other.

    ``exclusive``: without that element itself. ``reverse``: from the other end. f16 and bf16 are joined in f32. All
    begin with what changes nothing when it is joined (`neutral`), so -0.0 alone has the sum 0.0.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for what is not a number, or an axis that is not there."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if not x.datum_type.is_number() or x.datum_type.is_quantized():
            raise FactError(f"{self.name} wants numbers, found {x}")
        return (x.without_value(),)


@frozen
class CumSum(Running):
    """Along ``axis``, the sum of the elements up to each one."""


@frozen
class CumProd(Running):
    """Along ``axis``, the product of the elements up to each one."""


@frozen
class CumMax(Running):
    """Along ``axis``, the largest of the elements up to each one, which is NaN from the first NaN on."""


@frozen
class CumMin(Running):
    """Along ``axis``, the smallest of the elements up to each one, which is NaN from the first NaN on."""


@frozen
class CumLogSumExp(Running):
    """Along ``axis``, the logarithm of the sum of the exponentials of the elements up to each one: of real numbers."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for integers, too."""
        return (float_type(self, *Running.output_facts(self, inputs)),)


_JOINED: Final[dict[type[Running], Callable[[Array, int], Array]]] = {
    CumSum: lambda x, axis: np.add.accumulate(x, axis, dtype=x.dtype),
    CumProd: lambda x, axis: np.multiply.accumulate(x, axis, dtype=x.dtype),
    CumMax: LARGEST.so_far,
    CumMin: SMALLEST.so_far,
    CumLogSumExp: np.logaddexp.accumulate,
}

_NEUTRAL: Final[dict[type[Running], Callable[[np.dtype[Any]], Any]]] = {
    CumSum: lambda _: 0,
    CumProd: lambda _: 1,
    CumMax: LARGEST.nothing,
    CumMin: SMALLEST.nothing,
    CumLogSumExp: lambda _: -np.inf,
}


def neutral(op: Running, kind: DType) -> Array:
    """What changes nothing when it is joined with an element of that type: one number, of that type."""
    return np.array(_NEUTRAL[type(op)](kind.numpy), kind.numpy)


@ROWS.row(REFERENCE, *_JOINED)
@ROWS.row(SYMBOLIC, CumSum)
def reference(op: Running, x: Array) -> Array:
    """As numpy.cumsum, with what changes nothing in front; exclusive: without the last one, else without the first."""
    source = np.flip(x, op.axis) if op.reverse else x
    source = source.astype(x.dtype if x.dtype.kind == "O" else wide(x.dtype), copy=False)
    front = np.full_like(
        source, _NEUTRAL[type(op)](source.dtype), shape=(*x.shape[: op.axis], 1, *x.shape[op.axis + 1 :])
    )
    joined = _JOINED[type(op)](np.concatenate([front, source], op.axis), op.axis)
    first = 0 if op.exclusive else 1
    joined = np.take(joined, range(first, first + x.shape[op.axis]), op.axis).astype(x.dtype, copy=False)
    return np.flip(joined, op.axis) if op.reverse else joined


@ROWS.row(MEMORY, Running)
def memory(op: Running, made: int, x: Array) -> int:
    """What is joined with what is in front, what it gives, and the part of that which is kept"""
    each = 8 if x.dtype.kind == "O" else wide(x.dtype).itemsize
    return 3 * each * (x.size + x.size // max(x.shape[op.axis], 1)) + made


@ROWS.row(COST, Running)
def cost(op: Running, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, Running)
def axes(op: Running, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one that it works along, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
