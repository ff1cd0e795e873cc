"""Running sums, and whatever else is joined element by element along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, float_type, wide
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Running(TypedOp):
    """Base of the family: along ``axis``, what ``join`` makes of the elements up to each one.

    ``exclusive``: without that element itself. ``reverse``: from the other end. f16 and bf16 are joined in f32.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False
    join: ClassVar[np.ufunc]

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for what is not a number, or an axis that is not there."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if self.exclusive and self.join.identity is None:
            raise FactError(f"{self.name} has nothing to begin with, so it cannot be exclusive")
        if not x.datum_type.is_number() or x.datum_type.is_quantized():
            raise FactError(f"{self.name} wants numbers, found {x}")
        return (x.without_value(),)


@frozen
class CumSum(Running):
    """Along ``axis``, the sum of the elements up to each one."""

    join: ClassVar[np.ufunc] = np.add


@frozen
class CumProd(Running):
    """Along ``axis``, the product of the elements up to each one."""

    join: ClassVar[np.ufunc] = np.multiply


@frozen
class CumMax(Running):
    """Along ``axis``, the largest of the elements up to each one, which is NaN from the first NaN on."""

    join: ClassVar[np.ufunc] = np.maximum


@frozen
class CumMin(Running):
    """Along ``axis``, the smallest of the elements up to each one, which is NaN from the first NaN on."""

    join: ClassVar[np.ufunc] = np.minimum


@frozen
class CumLogSumExp(Running):
    """Along ``axis``, the logarithm of the sum of the exponentials of the elements up to each one: of real numbers."""

    join: ClassVar[np.ufunc] = np.logaddexp

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for integers, too."""
        return (float_type(self, *Running.output_facts(self, inputs)),)


@ROWS.row(REFERENCE, CumSum, CumProd, CumMax, CumMin, CumLogSumExp)
@ROWS.row(SYMBOLIC, CumSum)
def reference(op: Running, x: Array) -> Array:
    """numpy.cumsum, for any such operation; exclusive: shifted by one, with its identity in front"""
    kind = x.dtype if x.dtype.kind == "O" else wide(x.dtype)
    source = np.flip(x, op.axis) if op.reverse else x
    if op.exclusive:
        front = np.full_like(source, op.join.identity, shape=_one_on(x.shape, op.axis))
        source = np.concatenate([front, source], op.axis)
        source = np.take(source, range(x.shape[op.axis]), op.axis)
    joined = op.join.accumulate(source, axis=op.axis, dtype=kind).astype(x.dtype)
    return np.flip(joined, op.axis) if op.reverse else joined


def _one_on(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


@ROWS.row(COST, Running)
def cost(op: Running, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, Running)
def axes(op: Running, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one that it works along, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
