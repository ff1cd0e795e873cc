"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tract_core.data import Container, DatumType, DType, QuantizedType
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.ops.rounding import cut_into, round_into
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Cast(TypedOp):
    """Every element in another type.

    Floats become integers by dropping the fraction and stop at the ends of the range, of i32 for integers narrower than
    a byte; not-a-number becomes 0. Integers that do not fit wrap around; anything non-zero becomes true. From a
    quantised type, only the stored integers can be had.

    ``to``: that type.
    """

    to: DType
    by_element: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape in the type asked for."""
        (x,) = arity(self, inputs, 1)
        if isinstance(x.datum_type, Container) or isinstance(self.to, Container):
            raise FactError(f"Cast of {x} to {self.to.short}: containers cannot be converted")
        if x.datum_type.is_quantized() and self.to not in (x.datum_type, x.datum_type.storage):
            raise FactError(
                f"Cast from {x.datum_type.short} to {self.to.short} would need the quantisation parameters at run time",
                hint="use DequantizeLinear, whose parameters are inputs; a cast to the storage type gives the integers",
            )
        if x.datum_type.is_complex() and (self.to.is_float() or self.to.is_integer() or self.to.is_quantized()):
            raise FactError(f"Cast of {x} to {self.to.short} would lose the imaginary part")
        return (x.with_type(self.to),)


@frozen
class AsQuantized(TypedOp):
    """The same integers, as those that real numbers of the quantised type ``to`` are stored as."""

    to: QuantizedType

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape in that type. Raises FactError for anything but integers of its storage."""
        (x,) = arity(self, inputs, 1)
        if x.datum_type != self.to.storage:
            raise FactError(f"AsQuantized: {x} is not what {self.to} is stored as, wanted {self.to.storage.short}")
        return (x.with_type(self.to),)


@ROWS.row(REFERENCE, AsQuantized)
def stored(op: AsQuantized, x: Array) -> Array:
    """The integers themselves."""
    return x


@ROWS.row(REFERENCE, Cast)
def reference(op: Cast, x: Array) -> Array:
    """Plain conversion; into a quantised type, by its parameters, halves to even, saturating, not-a-number as 0."""
    if isinstance(op.to, QuantizedType):
        return round_into(x.astype(np.float64) / op.to.scale, np.array(op.to.zero_point), op.to.storage)
    if op.to is DatumType.STRING:
        return _to_strings(x)
    if x.dtype.kind in "OU":
        return _from_strings(op.to.storage, x)
    return _plain(op.to.storage, x)


def _plain(to: DatumType, x: Array) -> Array:
    kind = DatumType.from_numpy(x.dtype)
    if kind.is_float() and to.is_integer():
        return cut_into(x, to) if to.numpy.isbuiltin == 1 else _plain(to, cut_into(x, DatumType.I32))
    if x.dtype.isbuiltin == 1 or to.numpy.isbuiltin == 1:
        return x.astype(to.numpy)
    # What NumPy lacks has few conversions of its own; these types hold all of the numbers concerned.
    return x.astype(np.int8 if kind.is_integer() and to.is_integer() else np.float32).astype(to.numpy)


def _from_strings(to: DatumType, x: Array) -> Array:
    """Every text read as a number: integers exactly, anything else by way of float64."""
    read = int if to.is_integer() else float
    numbers: list[Any] = [_number(text, read) for text in x.reshape(-1).tolist()]
    carrier = np.float64 if not to.is_integer() else np.uint64 if to is DatumType.U64 else np.int64
    try:
        return np.array(numbers, dtype=carrier).reshape(x.shape).astype(to.numpy)
    except OverflowError:
        raise RunError(f"a text is a number that {to.short} does not hold") from None


def _to_strings(x: Array) -> Array:
    """Floats with as few digits as tell them from their neighbours in their type."""
    result: Array = np.empty(x.size, dtype=object)
    result[:] = [str(element) for element in x.reshape(-1)]
    return result.reshape(x.shape)


def _number(text: Any, read: Callable[[str], float]) -> float:
    try:
        return read(text.decode() if isinstance(text, bytes) else text)
    except ValueError:
        raise RunError(f"{text!r} is not a number of the type asked for") from None


@ROWS.row(SYMBOLIC, Cast)
def symbolic(op: Cast, x: Array) -> Array:
    """Sizes stay sizes in integers that are wide enough for any that occurs."""
    if not isinstance(op.to, DatumType) or not op.to.is_integer() or op.to.itemsize < 4:
        raise TypeError(f"sizes as {op.to}")
    return x


@ROWS.row(COST, Cast, AsQuantized)
def cost(op: Cast | AsQuantized, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Cast, AsQuantized)
def axes(op: Cast | AsQuantized, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
