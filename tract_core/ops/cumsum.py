"""Running sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, wide
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@dataclass(frozen=True, slots=True)
class CumSum(TypedOp):
    """Along ``axis``, the sum of the elements up to each one.

    ``exclusive``: without that element itself. ``reverse``: from the other end. f16 and bf16 are summed in f32.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for what is not a number, or an axis that is not there."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if not x.datum_type.is_number() or x.datum_type.is_quantized():
            raise FactError(f"CumSum wants numbers, found {x}")
        return (x.without_value(),)


@ROWS.row(REFERENCE, CumSum)
@ROWS.row(SYMBOLIC, CumSum)
def reference(op: CumSum, x: Array) -> Array:
    """numpy.cumsum; exclusive: shifted by one, with 0 in front"""
    return running(np.add, x, op.axis, exclusive=op.exclusive, reverse=op.reverse)


def running(join: np.ufunc, x: Array, axis: int, *, exclusive: bool, reverse: bool) -> Array:
    """``join`` of the elements up to each one along an axis; exclusive: shifted by one, with its identity in front."""
    kind = x.dtype if x.dtype.kind == "O" else wide(x.dtype)
    source = np.flip(x, axis) if reverse else x
    if exclusive:
        front = np.full_like(source, join.identity, shape=_one_on(x.shape, axis))
        source = np.concatenate([front, source], axis)
        source = np.take(source, range(x.shape[axis]), axis)
    joined = join.accumulate(source, axis=axis, dtype=kind).astype(x.dtype)
    return np.flip(joined, axis) if reverse else joined


def _one_on(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


@ROWS.row(COST, CumSum)
def cost(op: CumSum, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One addition per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, CumSum)
def axes(op: CumSum, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one of the sums, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
