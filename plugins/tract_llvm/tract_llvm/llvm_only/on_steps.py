"""Operators on elements of quantised tensors: all inputs have one rank, and stretch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from tract_core.ops.quantize import dequantized, in_steps
from tract_core.ops.rounding import round_into
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class OnSteps(TypedOp):
    """Base of the family."""

    to: DatumType

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape in type ``to``. Raises FactError for other ranks, or sizes that do not go together."""
        arity(self, inputs, self.count())
        same_rank(self, inputs)
        return (TypedFact(self.to, broadcast_shapes(self, [fact.shape for fact in inputs])),)

    def count(self) -> int:
        """How many inputs there are."""
        return 3


@frozen
class Requantize(OnSteps):
    """round(x * factor + offset) + zero in the integer type ``to``, of 8 bits: halves to even, saturated.

    Inputs: x in i32; factor and offset, finite, in f32 or f64, in which is computed; zero in ``to``. In f64 the result
    is the nearest integer. In f32, where the product is rounded, that may be the next one, as where a model says so.
    """

    to: DatumType

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape in type ``to``. Raises FactError for other types, ranks or sizes that do not go together."""
        x, factor, offset, zero = arity(self, inputs, 4)
        if x.datum_type is not DatumType.I32 or not factor.datum_type.is_float() or zero.datum_type is not self.to:
            raise FactError(f"Requantize wants i32, floats, floats and {self.to.short}, found {x}, {factor} and {zero}")
        if offset.datum_type != factor.datum_type or factor.datum_type.itemsize < 4:
            raise FactError(f"Requantize: the factor is {factor}, the offset {offset}")
        return OnSteps.output_facts(self, inputs)  # `super()` fails in classes with slots

    def count(self) -> int:
        """How many inputs there are."""
        return 4


@frozen
class Quantize(OnSteps):
    """What `tract_core.ops.quantize.QuantizeLinear` says of an element, which gets the type ``to``.

    Inputs: x, scale, zero point.
    """

    to: DatumType


@frozen
class Dequantize(OnSteps):
    """What `tract_core.ops.quantize.DequantizeLinear` says of an element, which gets the type ``to``.

    Inputs: x, scale, zero point.
    """

    to: DatumType


@frozen
class OfDequantized(OnSteps):
    """``op``: an operator of two elements, of which one or both are dequantised before.

    ``dequantized``: which; such an operand is three inputs, as those of `Dequantize`. ``to``: the type of the numbers.
    """

    op: binary.Binary
    dequantized: tuple[bool, bool]
    to: DatumType

    def count(self) -> int:
        """How many inputs there are."""
        return 2 + 2 * sum(self.dequantized)


@frozen
class SumOfSteps(OnSteps):
    """round(x * factor + y * other factor + offset) + zero in the integer type ``to``, of 8 bits, as in `Requantize`.

    Inputs: x and y, of 8 bits, each with its factor behind it; the offset; zero in ``to``. Factors and offset are f32,
    in which is computed, and no product of them is infinite.
    """

    to: DatumType

    def count(self) -> int:
        """How many inputs there are."""
        return 6


@ROWS.row(REFERENCE, SumOfSteps)
def sum_of_steps(op: SumOfSteps, *inputs: Array) -> Array:
    """In f32"""
    x, factor, y, other, offset, zero = inputs
    real = x.astype(np.float32) * factor + (y.astype(np.float32) * other + offset)
    return round_into(real, zero.astype(np.int64), op.to)


@ROWS.row(REFERENCE, Requantize)
def requantize(op: Requantize, x: Array, factor: Array, offset: Array, zero: Array) -> Array:
    """In the type of the factor"""
    real = x.astype(factor.dtype) * factor + offset
    return round_into(real, zero.astype(np.int64), op.to)


@ROWS.row(REFERENCE, Quantize)
def quantize(op: Quantize, x: Array, scale: Array, zero: Array) -> Array:
    """round(x / scale) + zero, the quotient taken in f32 (in f64 for integers and f64)"""
    return round_into(in_steps(x, scale), zero.astype(np.int64), op.to)


@ROWS.row(REFERENCE, Dequantize)
def dequantize(op: OnSteps, x: Array, scale: Array, zero: Array) -> Array:
    """(x - zero) * scale, in f32 (in f64 for f64)"""
    return dequantized(x, scale, zero, op.to)


@ROWS.row(REFERENCE, OfDequantized)
def of_dequantized(op: OfDequantized, *inputs: Array) -> Array:
    """The operator, on numbers"""
    given = iter(inputs)
    operands = [dequantize(op, next(given), next(given), next(given)) if one else next(given) for one in op.dequantized]
    return binary.reference(op.op, *operands)


@ROWS.row(COST, OnSteps)
def cost(op: OnSteps, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A product, or a division, per element."""
    kind = "DIV" if isinstance(op, Quantize) else "FMA"
    return {f"{kind}(F32)": outputs[0].shape.volume}


@ROWS.row(AXES, OnSteps)
def axes(op: OnSteps, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """As for any operator on elements."""
    return binary.axes(binary.Add(), inputs, outputs)  # only the facts are looked at
