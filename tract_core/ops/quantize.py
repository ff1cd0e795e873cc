"""Real numbers as small integers and back, and the integer arithmetic of quantised networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import ClassVar, Final

import numpy as np

from tract_core.data import Constant, DatumType, DType, QuantizedType
from tract_core.dims import Dim, ceil_div
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_of_shape
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Div, Eq, Max, Min, Sub
from tract_core.ops.binary import axes as binary_axes
from tract_core.ops.elementwise import Neg
from tract_core.ops.expect import arity, axis_in, broadcast_shapes, same_rank
from tract_core.ops.iff import Iff
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.rounding import greatest, limits, round_into
from tract_core.ops.wiring import wire_binary, wire_one, wire_squeeze
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class _Linear(TypedOp):
    """Base of `QuantizeLinear` and `DequantizeLinear`: inputs x, scale, zero point.

    Scale and zero point have one shape: rank 0 for all of ``x``; rank 1 with one value per position of ``axis``; or
    the rank of ``x`` with one value per ``block`` positions of ``axis`` (the last block may be short).
    """

    to: DatumType
    axis: int
    block: int

    def check_parameters(self, inputs: Sequence[TypedFact]) -> TypedFact:
        """The fact of x. Raises FactError when the parameters do not fit it."""
        x, scale, zero = arity(self, inputs, 3)
        if not scale.datum_type.is_float():
            raise FactError(f"{self.name}: the scale is {scale}, floats are wanted")
        wanted = self._parameter_shape(x, scale.rank)
        for label, fact in (("scale", scale), ("zero point", zero)):
            if not may_be_of_shape(fact.shape, wanted):
                sizes = ",".join(map(str, wanted)) or "no axes"
                raise FactError(f"{self.name}: the {label} is {fact}, wanted {sizes} for {x}")
        return x

    def _parameter_shape(self, x: TypedFact, rank: int) -> tuple[Dim, ...]:
        if rank == 0:
            return ()
        axis_in(self, self.axis, x.rank)
        if not self.block:
            return (x.shape[self.axis],)
        blocks = ceil_div(x.shape[self.axis], self.block)
        return (*x.shape[: self.axis], blocks, *x.shape[self.axis + 1 :])

    def spread(self, parameter: Array, x: Array) -> Array:
        """A parameter with one value for each element of ``x``, or in a shape that stretches to that."""
        if parameter.ndim == 0:
            return parameter
        if not self.block:
            return parameter.reshape([-1 if axis == self.axis else 1 for axis in range(x.ndim)])
        repeated = np.repeat(parameter, self.block, axis=self.axis)
        return repeated[(slice(None),) * self.axis + (slice(0, x.shape[self.axis]),)]


@frozen
class QuantizeLinear(_Linear):
    """round(x / scale) + zero_point in the type ``to``: halves to even, saturated. The zero point has that type.

    ``to`` may be a narrow float: the quotient is rounded to it, and bounded by its greatest value if ``saturate``.
    ``axis``: along which there is a scale for each position, or for each ``block`` of so many where that is not 0.
    """

    to: DatumType
    axis: int = 0
    block: int = 0
    saturate: bool = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The shape of x in type ``to``. Raises FactError when types or parameters do not fit."""
        x = self.check_parameters(inputs)
        if not (x.datum_type.is_float() or x.datum_type is DatumType.I32) or not _storable(self.to):
            raise FactError(f"QuantizeLinear makes integers or narrow floats of floats, not {self.to.short} of {x}")
        if inputs[2].datum_type != self.to:
            raise FactError(f"QuantizeLinear: the zero point is {inputs[2]}, wanted {self.to.short}")
        return (x.with_type(self.to),)


@frozen
class DequantizeLinear(_Linear):
    """(x - zero_point) * scale, in the float type ``to``. The zero point has the type of x.

    ``axis``: along which there is a scale for each position, or for each ``block`` of so many where that is not 0.
    """

    unpacks: ClassVar[bool] = True
    to: DatumType
    axis: int = 0
    block: int = 0

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The shape of x in type ``to``. Raises FactError when types or parameters do not fit."""
        x = self.check_parameters(inputs)
        if not _storable(x.datum_type.storage) or not self.to.is_float():
            raise FactError(f"DequantizeLinear makes floats of integers or narrow floats, not {self.to.short} of {x}")
        if inputs[2].datum_type.storage != x.datum_type.storage:
            raise FactError(f"DequantizeLinear: the zero point is {inputs[2]}, wanted {x.datum_type.short}")
        return (x.with_type(self.to),)


def _storable(kind: DatumType) -> bool:
    return kind.is_integer() or (kind.is_float() and kind.itemsize == 1)


@frozen
class Scale(TypedOp):
    """Integers (input 1) times real factors (input 0), rounded (halves to even) and saturated in their own type."""

    by_element: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape, in the type of input 1. Raises FactError for other types, ranks or sizes that differ."""
        factor, x = arity(self, inputs, 2)
        same_rank(self, inputs)
        if not factor.datum_type.is_float() or not x.datum_type.storage.is_integer():
            raise FactError(f"Scale wants floats and integers, found {factor} and {x}")
        return (TypedFact(x.datum_type, broadcast_shapes(self, [factor.shape, x.shape])),)


class Ties(Enum):
    """Where numbers half way between two integers go."""

    ZERO = "zero"
    AWAY = "away"
    MINUS_INF = "minus_inf"
    PLUS_INF = "plus_inf"
    EVEN = "even"
    ODD = "odd"


@frozen
class QScale(TypedOp):
    """x * multiplier / 2**(31 + shift), exactly, then rounded to the nearest i32 (ties as said) and saturated."""

    by_element: ClassVar[bool] = True
    multiplier: int
    shift: int
    ties: Ties = Ties.EVEN

    @staticmethod
    def of(factor: float, ties: Ties = Ties.EVEN) -> QScale:
        """The fixed-point form of a factor, rounded to 31 binary digits. Raises FactError unless it is finite."""
        if not math.isfinite(factor):
            raise FactError(f"QScale: {factor} cannot be written with a fixed point")
        digits, exponent = math.frexp(factor)
        multiplier = round(digits * 2**31)
        if abs(multiplier) == 2**31:
            multiplier, exponent = multiplier // 2, exponent + 1
        return QScale(multiplier, -exponent, ties)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape, i32. Raises FactError for anything but i32, and for numbers out of range."""
        (x,) = arity(self, inputs, 1)
        if x.datum_type.storage is not DatumType.I32:
            raise FactError(f"QScale wants i32, found {x}")
        if not -(2**31) < self.multiplier < 2**31:
            raise FactError(f"QScale: the multiplier {self.multiplier} does not fit 32 bits")
        return (x.without_value(),)


@frozen
class LookupTable(TypedOp):
    """The entry of ``table`` (256 of them) for each byte; an i8 stands for the byte with the same bits."""

    by_element: ClassVar[bool] = True
    table: Constant

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape in the table's type. Raises FactError for anything but bytes and 256 entries."""
        (x,) = arity(self, inputs, 1)
        if x.datum_type.storage not in (DatumType.U8, DatumType.I8):
            raise FactError(f"LookupTable wants u8 or i8, found {x}")
        if self.table.array.shape != (256,):
            raise FactError(f"LookupTable wants 256 entries, found shape {self.table.array.shape}")
        return (x.with_type(self.table.datum_type),)


@frozen
class OffsetI8asU8(TypedOp):
    """An i8 plus 128, as u8. A quantised type keeps its real values: its zero point moves along."""

    by_element: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape, u8. Raises FactError for anything but i8."""
        return (_moved(self, inputs, DatumType.I8, DatumType.U8, 128),)


@frozen
class OffsetU8asI8(TypedOp):
    """A u8 less 128, as i8. A quantised type keeps its real values: its zero point moves along."""

    by_element: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape, i8. Raises FactError for anything but u8."""
        return (_moved(self, inputs, DatumType.U8, DatumType.I8, -128),)


def _moved(op: TypedOp, inputs: Sequence[TypedFact], source: DatumType, to: DatumType, offset: int) -> TypedFact:
    (x,) = arity(op, inputs, 1)
    kind = x.datum_type
    if kind.storage is not source:
        raise FactError(f"{op.name} wants {source.short}, found {x}")
    moved: DType = QuantizedType(to, kind.zero_point + offset, kind.scale) if isinstance(kind, QuantizedType) else to
    return x.with_type(moved)


def in_steps(x: Array, scale: Array) -> Array:
    """The quotient x / scale, not rounded: in f32 (in f64 for i32 and f64). The scale stretches to the shape of x."""
    compute = np.float64 if x.dtype.itemsize == 8 or x.dtype.kind == "i" else np.float32
    return x.astype(compute) / scale.astype(compute)


def dequantized(x: Array, scale: Array, zero: Array, to: DatumType) -> Array:
    """(x - zero) * scale in the type ``to``, computed in f32 (in f64 for f64). Both stretch to the shape of x."""
    exact = np.int64 if x.dtype.kind in "iu" or DatumType.from_numpy(x.dtype).is_integer() else np.float32
    compute = np.float64 if DatumType.F64 in (to, DatumType.from_numpy(scale.dtype)) else np.float32
    centred = x.astype(exact) - zero.astype(exact)
    return (centred.astype(compute) * scale.astype(compute)).astype(to.numpy)


@ROWS.row(REFERENCE, QuantizeLinear)
def quantize(op: QuantizeLinear, x: Array, scale: Array, zero: Array) -> Array:
    """round(x / scale) + zero_point, the quotient taken in f32 (in f64 for i32 and f64)"""
    quotient = in_steps(x, op.spread(scale, x))
    if op.to.is_integer():
        return round_into(quotient, op.spread(zero.astype(np.int64), x), op.to)
    if op.saturate:
        quotient = np.clip(quotient, -greatest(op.to), greatest(op.to))
    return quotient.astype(op.to.numpy)


@ROWS.row(REFERENCE, DequantizeLinear)
def dequantize(op: DequantizeLinear, x: Array, scale: Array, zero: Array) -> Array:
    """(x - zero_point) * scale, in f32 (in f64 for f64)"""
    return dequantized(x, op.spread(scale, x), op.spread(zero, x), op.to)


@ROWS.row(REFERENCE, Scale)
def scale(op: Scale, factor: Array, x: Array) -> Array:
    """round(factor * x)"""
    return round_into(factor.astype(np.float64) * x.astype(np.float64), np.array(0), DatumType.from_numpy(x.dtype))


_GOES_UP: Final[dict[Ties, Callable[[Array], Array]]] = {
    Ties.ZERO: lambda low: low < 0,
    Ties.AWAY: lambda low: low >= 0,
    Ties.MINUS_INF: lambda low: np.zeros_like(low, np.bool_),
    Ties.PLUS_INF: lambda low: np.ones_like(low, np.bool_),
    Ties.EVEN: lambda low: low % 2 == 1,
    Ties.ODD: lambda low: low % 2 == 0,
}
"""For the lower one of the two nearest integers, whether a tie goes to the upper one."""


@ROWS.row(REFERENCE, QScale)
def q_scale(op: QScale, x: Array) -> Array:
    """Integer arithmetic on 64 bits, which hold every product."""
    bits = 31 + op.shift
    wide_x = x.astype(np.int64) * op.multiplier
    if bits <= 0:
        found: Array = wide_x.astype(object) << -bits
    elif bits > 62:
        found = np.zeros_like(wide_x)
    else:
        low = wide_x >> bits
        rest, half = wide_x - (low << bits), 1 << (bits - 1)
        found = low + ((rest > half) | ((rest == half) & _GOES_UP[op.ties](low)))
    return np.clip(found, *limits(DatumType.I32)).astype(np.int32)


@ROWS.row(REFERENCE, LookupTable)
def lookup(op: LookupTable, x: Array) -> Array:
    """table[byte]"""
    return op.table.array[x.astype(np.uint8)]


@ROWS.row(REFERENCE, OffsetI8asU8, OffsetU8asI8)
def offset(op: TypedOp, x: Array) -> Array:
    """The top bit flipped: adding 128 and subtracting it are the same on bytes."""
    return (x.view(np.uint8) ^ np.uint8(128)).view(np.uint8 if x.dtype == np.int8 else np.int8)


@ROWS.row(MEMORY, QuantizeLinear, DequantizeLinear)
def memory(op: _Linear, made: int, x: Array, scale: Array, zero: Array) -> int:
    """What is made step by step of the elements, and of the parameters of blocks: up to four numbers of 8 bytes"""
    steps = 4 if isinstance(op, QuantizeLinear) else 2
    each = steps * 8 if 8 in (x.itemsize, scale.itemsize) else steps * 8 - 4
    return x.size * (each + (8 + scale.itemsize if op.block else 0)) + made


@ROWS.row(COST, QuantizeLinear)
def quantize_cost(op: QuantizeLinear, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A division per element."""
    return {f"DIV({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(COST, DequantizeLinear, Scale, QScale)
def product_cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A product per element."""
    return {f"FMA({outputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(COST, LookupTable, OffsetI8asU8, OffsetU8asI8)
def free(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention: nothing is multiplied."""
    return {}


@ROWS.row(AXES, QuantizeLinear, DequantizeLinear)
def linear_axes(op: _Linear, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes stay in place, also in parameters that have them; an axis in blocks is disconnected."""
    x, parameter = inputs[0].rank, inputs[1].rank
    if parameter and op.block:
        return AxesMapping.natural_but([x, parameter, parameter], [x], [op.axis])
    mapping = AxesMapping.natural([x], [x])
    (names,) = mapping.inputs
    term = names[op.axis] if parameter else ""
    return AxesMapping((names, term, term), mapping.outputs)


@ROWS.row(AXES, Scale)
def scale_axes(op: Scale, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """As for any binary operator."""
    return binary_axes(op, inputs, outputs)  # pyright: ignore[reportArgumentType]: only the facts are looked at


@ROWS.row(AXES, QScale, LookupTable, OffsetI8asU8, OffsetU8asI8)
def natural_axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])


def wire_dynamic_quantize(model: TypedModel, name: str, x: OutletId) -> tuple[OutletId, OutletId, OutletId]:
    """``x`` (f32) as u8, with a scale and a zero point that fit its range, widened to hold 0.

    Returns the numbers, the scale (f32) and the zero point (u8), both of rank 0. Where all of ``x`` is 0, the scale
    is 1.
    """
    rank = model.outlet_fact(x).rank
    zero, one, steps = (
        model.add_const(f"{name}.{label}", np.array(value, np.float32))
        for label, value in (("zero", 0), ("one", 1), ("steps", 255))
    )

    def extreme(label: str, reducer: Reducer, op: TypedOp) -> OutletId:
        found = wire_one(model, f"{name}.{label}.all", Reduce(tuple(range(rank)), reducer), x)
        found = wire_squeeze(model, f"{name}.{label}.scalar", found, range(rank))
        return wire_binary(model, f"{name}.{label}", op, found, zero)

    low, high = extreme("min", Reducer.MIN, Min()), extreme("max", Reducer.MAX, Max())
    span = wire_one(model, f"{name}.span", Sub(), high, low)
    scale = wire_one(model, f"{name}.raw_scale", Div(), span, steps)
    flat = wire_one(model, f"{name}.flat", Eq(), span, zero)
    scale = wire_one(model, f"{name}.scale", Iff(), flat, one, scale)
    nothing = model.add_const(f"{name}.u8_zero", np.array(0, np.uint8))
    below = wire_one(model, f"{name}.below", Neg(), low)
    point = wire_one(model, f"{name}.zero_point", QuantizeLinear(DatumType.U8), below, scale, nothing)
    return wire_one(model, name, QuantizeLinear(DatumType.U8), x, scale, point), scale, point
