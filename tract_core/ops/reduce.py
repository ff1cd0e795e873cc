"""Axes reduced to size 1: sums, products, extremes and where they are, and logical summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import reduce
from math import prod
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType, DType, SymbolicArray
from tract_core.dims import Dim, dim_max, dim_min, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, And, Div, Gt, Lt, Rem, Sub
from tract_core.ops.expect import arity, axis_in, wide
from tract_core.ops.extremes import LARGEST, SMALLEST
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wiring import wire_binary, wire_cast, wire_one
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class Reducer(Enum):
    """How many elements become one. The value is the name that listings use."""

    SUM = "sum"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    ARG_MIN_FIRST = "arg_min_first"
    ARG_MIN_LAST = "arg_min_last"
    ARG_MAX_FIRST = "arg_max_first"
    ARG_MAX_LAST = "arg_max_last"
    MEAN_OF_SQUARES = "mean_of_squares"
    ALL = "all"
    ANY = "any"


_ARG: Final = frozenset({Reducer.ARG_MIN_FIRST, Reducer.ARG_MIN_LAST, Reducer.ARG_MAX_FIRST, Reducer.ARG_MAX_LAST})
_LOGICAL: Final = frozenset({Reducer.ALL, Reducer.ANY})
_ORDER: Final = frozenset({Reducer.MIN, Reducer.MAX}) | _ARG


@frozen
class Reduce(TypedOp):
    """``axes`` reduced to size 1 each by ``reducer``; the other axes stay.

    Sums, products and extremes keep the type (narrow floats are summed in f32, integers wrap around). Of nothing, the
    sum is 0, the product 1, and an extreme the last value that the type has on the other side. The ``ARG`` reducers
    give the position (i64) along the one axis, the first or the last one of equals; not-a-number comes before all
    numbers.
    """

    axes: tuple[int, ...]
    reducer: Reducer

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape with 1 for the reduced axes. Raises FactError for axes or types that do not fit."""
        (x,) = arity(self, inputs, 1)
        for axis in self.axes:
            axis_in(self, axis, x.rank)
        if len(set(self.axes)) < len(self.axes):
            raise FactError(f"Reduce: axes {list(self.axes)} name one axis twice")
        if self.reducer in _ARG and len(self.axes) != 1:
            raise FactError(f"Reduce {self.reducer.value} looks along one axis, found axes {list(self.axes)}")
        if self.reducer in _ARG and not may_be_at_most(1, x.shape[self.axes[0]]):
            raise FactError(f"Reduce {self.reducer.value} finds no position on an axis of size 0: {x}")
        shape = ShapeFact(1 if axis in self.axes else size for axis, size in enumerate(x.shape))
        return (TypedFact(self._output_type(x), shape),)

    def _output_type(self, x: TypedFact) -> DType:
        kind = x.datum_type
        if self.reducer in _LOGICAL:
            fits = kind.is_bool()
        elif self.reducer in _ORDER:
            fits = (kind.is_number() or kind.is_bool()) and not kind.is_complex()
        elif self.reducer is Reducer.MEAN_OF_SQUARES:
            fits = kind.is_float()
        else:
            fits = kind.is_number() and not kind.is_quantized()
        if not fits:
            raise FactError(f"Reduce {self.reducer.value} does not take {kind.short}: {x}")
        return DatumType.I64 if self.reducer in _ARG else kind


def _last(find: Callable[..., Any], x: Array, axis: int) -> Array:
    """The last position that ``find`` could have answered: found from the end."""
    return x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=True)


def mean_of_squares(x: Array, axes: Sequence[int]) -> Array:
    """The mean over ``axes``, which keep size 1; of nothing, not a number (without NumPy's warning)."""
    total = np.sum(np.square(x), axis=tuple(axes), keepdims=True, dtype=x.dtype)
    return np.divide(total, x.dtype.type(prod(x.shape[axis] for axis in axes)))


_MEANING: Final[dict[Reducer, Callable[[Array, tuple[int, ...]], Array]]] = {
    Reducer.SUM: lambda x, axes: np.sum(x, axis=axes, keepdims=True, dtype=x.dtype),
    Reducer.PROD: lambda x, axes: np.prod(x, axis=axes, keepdims=True, dtype=x.dtype),
    Reducer.MIN: SMALLEST.along,
    Reducer.MAX: LARGEST.along,
    Reducer.ARG_MIN_FIRST: lambda x, axes: np.argmin(x, axis=axes[0], keepdims=True),
    Reducer.ARG_MIN_LAST: lambda x, axes: _last(np.argmin, x, axes[0]),
    Reducer.ARG_MAX_FIRST: lambda x, axes: np.argmax(x, axis=axes[0], keepdims=True),
    Reducer.ARG_MAX_LAST: lambda x, axes: _last(np.argmax, x, axes[0]),
    Reducer.MEAN_OF_SQUARES: mean_of_squares,
    Reducer.ALL: lambda x, axes: np.all(x, axis=axes, keepdims=True),
    Reducer.ANY: lambda x, axes: np.any(x, axis=axes, keepdims=True),
}


@ROWS.row(REFERENCE, Reduce)
def reference(op: Reduce, x: Array) -> Array:
    """The function of `_MEANING` over the axes; narrow floats are computed in f32 and rounded once."""
    result = np.asarray(_MEANING[op.reducer](x.astype(wide(x.dtype), copy=False), op.axes))
    if op.reducer in _ARG:
        return result.astype(np.int64, copy=False)
    return result.astype(x.dtype, copy=False)


_ON_SIZES: Final[dict[Reducer, Callable[[Any, Any], Any]]] = {
    Reducer.SUM: lambda a, b: a + b,
    Reducer.PROD: lambda a, b: a * b,
    Reducer.MIN: dim_min,
    Reducer.MAX: dim_max,
}
_NEUTRAL: Final = {Reducer.SUM: (0,), Reducer.PROD: (1,)}


@ROWS.row(SYMBOLIC, Reduce)
def symbolic(op: Reduce, x: Array) -> Array:
    """Sums, products and extremes of sizes, one after the other."""
    kept = [axis for axis in range(x.ndim) if axis not in op.axes]
    shape = [1 if axis in op.axes else size for axis, size in enumerate(x.shape)]
    groups = x.transpose([*kept, *op.axes]).reshape([prod(x.shape[axis] for axis in axes) for axes in (kept, op.axes)])
    result = np.empty(len(groups), dtype=object)
    combine, neutral = _ON_SIZES[op.reducer], _NEUTRAL.get(op.reducer, ())
    result[:] = [reduce(combine, group.tolist(), *neutral) for group in groups]
    return result.reshape(shape)


@ROWS.row(COST, Reduce)
def cost(op: Reduce, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per input element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, Reduce)
def axes(op: Reduce, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes that are not reduced stay in place; a reduced one is another axis on each side."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], op.axes)


def wire_mean(model: TypedModel, name: str, x: OutletId, axes: Sequence[int]) -> OutletId:
    """The mean over ``axes``, which keep size 1: 0 of no integers, not a number of no floats.

    Narrow floats are computed in f32 and rounded once; that of integers is cut off at the point. No sum leaves a type.
    """
    fact = model.outlet_fact(x)
    kind = fact.datum_type
    whole = kind.is_integer() and not isinstance(fact.value, SymbolicArray)
    compute = DatumType.I64 if whole and kind.itemsize < 8 else DatumType.from_numpy(wide(kind.numpy))
    count = model.add_const(f"{name}.count", product(fact.shape[axis] for axis in axes))
    count = wire_cast(model, f"{name}.count", count, compute)
    if whole and kind == compute:
        return _wire_mean_of_longs(NodeWiring(model, name), x, axes, count)
    total = wire_one(model, f"{name}.sum", Reduce(tuple(axes), Reducer.SUM), wire_cast(model, name, x, compute))
    narrow = compute != fact.datum_type
    mean = wire_binary(model, f"{name}.mean" if narrow else name, Div(), total, count)
    return wire_cast(model, name, mean, fact.datum_type)


def _wire_mean_of_longs(wire: NodeWiring, x: OutletId, axes: Sequence[int], count: OutletId) -> OutletId:
    """Quotients and remainders are summed apart, as the sum of the integers may be none of the type."""
    count, _ = wire.ranks(count, x)
    total, left = (wire.op(Reduce(tuple(axes), Reducer.SUM), wire.op(op, x, count)) for op in (Div(), Rem()))
    total, left = wire.op(Add(), total, wire.op(Div(), left, count)), wire.op(Rem(), left, count)
    if wire.dtype(x).is_unsigned():
        return total
    # What is left is less than one: where it has the other sign, it brings the mean one nearer to 0.
    zero = wire.scalar(0, total)
    below, above = (
        (wire.op(op, total, zero), wire.op(other, left, zero)) for op, other in ((Lt(), Gt()), (Gt(), Lt()))
    )
    up, down = (wire.cast(wire.op(And(), *both), wire.dtype(x)) for both in (below, above))
    return wire.op(Sub(), wire.op(Add(), total, up), down)
