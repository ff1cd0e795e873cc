"""Keep every n-th element of an axis, or turn its order around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tract_core.dims import Dim, ceil_div
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Downsample(TypedOp):
    """The elements ``modulo``, ``modulo + stride``, ... of ``axis``.

    With a negative stride, the last element, then backwards in steps of ``-stride``; ``modulo`` is 0 then.
    """

    axis: int
    stride: int
    modulo: int = 0
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``(size - modulo) / |stride|`` elements, rounded up. Raises FactError for a stride or modulo that is none."""
        (x,) = arity(self, inputs, 1)
        size = x.shape[axis_in(self, self.axis, x.rank)]
        if self.stride == 0 or self.modulo < 0 or (self.stride < 0 and self.modulo != 0):
            raise FactError(
                f"Downsample: stride {self.stride} with modulo {self.modulo}; wanted a stride that is not 0, "
                "a modulo that is not negative, and no modulo with a negative stride"
            )
        if not may_be_at_most(self.modulo, size):
            raise FactError(f"Downsample: modulo {self.modulo} is beyond axis {self.axis} of {x}")
        kept = ceil_div(size - self.modulo, abs(self.stride))
        return (x.with_shape((*x.shape[: self.axis], kept, *x.shape[self.axis + 1 :])),)


@ROWS.row(REFERENCE, Downsample)
@ROWS.row(SYMBOLIC, Downsample)
def reference(op: Downsample, x: Array) -> Array:
    """x[modulo::stride] on the axis"""
    size = x.shape[op.axis]
    if op.modulo > size:
        raise RunError(f"modulo {op.modulo} is beyond axis {op.axis}, which has size {size}")
    start = op.modulo if op.stride > 0 else None
    return x[(slice(None),) * op.axis + (slice(start, None, op.stride),)]


@ROWS.row(COST, Downsample)
def cost(op: Downsample, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Downsample)
def axes(op: Downsample, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one that is thinned out, which is disconnected."""
    return AxesMapping.natural_but([fact.rank for fact in inputs], [outputs[0].rank], [op.axis])
