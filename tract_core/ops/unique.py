"""The different elements of a tensor, or slices of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Unique(TypedOp):
    """The different slices along ``axis``; without an axis, the different elements, as a list.

    They are in ascending order, or, unless ``sorted``, in that of their first occurrence. Outputs: the slices; for each
    of them, where it occurs first, i64; for each slice of the input, which of them it is, i64; how often each occurs,
    i64. ``count``: how many there will be; a fresh symbol, as a rule. ``joins_nans``: whether elements that are NaN
    count as the same one, where there is no axis.
    """

    axis: int | None
    sorted: bool
    count: Dim
    joins_nans: bool = True
    announces: ClassVar[tuple[str, ...]] = ("count",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``count`` slices, places and counts, and as many positions as the input has slices. Raises FactError."""
        (x,) = arity(self, inputs, 1)
        if self.axis is None:
            found, slices = x.with_shape((self.count,)), x.shape.volume
        else:
            axis = axis_in(self, self.axis, x.rank)
            found, slices = x.with_shape((*x.shape[:axis], self.count, *x.shape[axis + 1 :])), x.shape[axis]
        return (found, *(TypedFact.of(DatumType.I64, (size,)) for size in (self.count, slices, self.count)))


@ROWS.row(REFERENCE, Unique)
def reference(op: Unique, x: Array) -> tuple[Array, ...]:
    """numpy.unique, then put into the order that is wanted"""
    x, axis = (x.reshape(-1), 0) if op.axis is None else (x, op.axis)
    keys = np.moveaxis(_comparable(x), axis, 0)
    if op.axis is not None:
        keys = keys.reshape(len(keys), math.prod(keys.shape[1:]))
    _, first, which, counts = np.unique(
        keys, True, True, True, axis=0 if keys.ndim > 1 else None, equal_nan=op.joins_nans
    )
    which = which.reshape(-1)
    if not op.sorted:
        order = np.argsort(first)
        first, counts = first[order], counts[order]
        which = np.argsort(order)[which]
    return np.take(x, first, axis), *(found.astype(np.int64) for found in (first, which, counts))


def _comparable(x: Array) -> Array:
    """The elements in a type that NumPy can sort whole slices of, in the same order."""
    if x.dtype.kind == "O":
        return x.astype(np.str_)
    narrow = DatumType.from_numpy(x.dtype).is_float() and x.dtype.itemsize < 4
    return x.astype(np.float32) if narrow else x


@ROWS.row(MEMORY, Unique)
def memory(op: Unique, made: int, x: Array) -> int:
    """The elements sorted, and seven positions for each: where it was first and is now, how often, and to sort these"""
    count = x.size if op.axis is None else x.shape[op.axis]
    return 4 * x.size * max(x.itemsize, 4) + 7 * 8 * count + made


@ROWS.row(COST, Unique)
def cost(op: Unique, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One comparison per element, by convention."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume}


@ROWS.row(AXES, Unique)
def axes(op: Unique, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: whether two slices differ depends on all of each."""
    return AxesMapping.disconnected([inputs[0].rank], [fact.rank for fact in outputs])
