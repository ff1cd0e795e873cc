"""Running products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.cumsum import running
from tract_core.ops.expect import arity, axis_in, integers, scalar
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@dataclass(frozen=True, slots=True)
class CumProd(TypedOp):
    """Along ``axis``, the product of the elements up to each one.

    ``exclusive``: without that element itself. ``reverse``: from the other end. f16 and bf16 are multiplied in f32.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input. Raises FactError for what is not a number, or an axis that is not there."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        return (_numbers(self, x),)


@dataclass(frozen=True, slots=True)
class DynCumProd(TypedOp):
    """`CumProd` along the axis that the second input, of rank 0, holds; a negative one counts from the end."""

    exclusive: bool = False
    reverse: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the first input. Raises FactError for what is not a number, or an axis that is no integer."""
        x, axis = arity(self, inputs, 2)
        scalar(self, integers(self, axis, "axis"), "axis")
        return (_numbers(self, x),)


def _numbers(op: TypedOp, x: TypedFact) -> TypedFact:
    if not x.datum_type.is_number() or x.datum_type.is_quantized():
        raise FactError(f"{op.name} wants numbers, found {x}")
    return x.without_value()


@ROWS.row(REFERENCE, DynCumProd)
def dyn_reference(op: DynCumProd, x: Array, axis: Array) -> Array:
    """That of the static form, for the axis at hand"""
    if not -x.ndim <= int(axis) < x.ndim:
        raise RunError(f"axis {int(axis)} is outside a tensor of rank {x.ndim}")
    return reference(CumProd(int(axis) % x.ndim, op.exclusive, op.reverse), x)


@ROWS.row(REFERENCE, CumProd)
def reference(op: CumProd, x: Array) -> Array:
    """numpy.cumprod; exclusive: shifted by one, with 1 in front"""
    return running(np.multiply, x, op.axis, exclusive=op.exclusive, reverse=op.reverse)


@ROWS.row(COST, CumProd, DynCumProd)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One product per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, CumProd)
def axes(op: CumProd, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one of the products, which is disconnected."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])


@ROWS.row(AXES, DynCumProd)
def dyn_axes(op: DynCumProd, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: it may be any axis."""
    return AxesMapping.disconnected([inputs[0].rank, 0], [outputs[0].rank])
