"""The largest or smallest elements along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import POSITION, arity, axis_in, integers, scalar, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Topk(TypedOp):
    """The ``k`` largest (or smallest) elements along ``axis``, in order, and their positions on it, as i64.

    Of equal elements, the one with the lower position comes first; what is not a number counts as the largest. How many
    is the second input, of rank 0; ``k``: what it will be.
    """

    axis: int
    largest: bool
    k: Dim
    announces: ClassVar[tuple[str, ...]] = ("k",)
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``k`` elements on the axis, twice. Raises FactError for a ``k`` that does not fit."""
        x, k = arity(self, inputs, 2)
        scalar(self, integers(self, k, "k"), "k")
        size = x.shape[axis_in(self, self.axis, x.rank)]
        if not may_be_at_most(self.k, size):
            raise FactError(f"Topk: {self.k} elements of axis {self.axis} of {x}, which has {size}")
        values = x.with_shape((*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :]))
        return values, values.with_type(DatumType.I64)


@ROWS.row(REFERENCE, Topk)
def reference(op: Topk, x: Array, k: Array) -> tuple[Array, Array]:
    """The first k of a stable sort"""
    size, count = x.shape[op.axis], int(k)
    check_count(op, size, count)
    sortable = x.astype(wide(x.dtype), copy=False)  # among narrow floats, a NaN would leave all others unsorted
    if op.largest:
        # Sorted backwards and turned round twice, so that of equal elements the first one stays first.
        order = size - 1 - np.flip(np.argsort(np.flip(sortable, op.axis), op.axis, kind="stable"), op.axis)
    else:
        order = np.argsort(sortable, op.axis, kind="stable")
    found = np.take(order, range(count), op.axis)
    return np.take_along_axis(x, found, op.axis), found.astype(np.int64)


def check_count(op: Topk, size: int, count: int) -> None:
    """Raises RunError unless there are as many elements on an axis of a size as are wanted."""
    if not 0 <= count <= size:
        raise RunError(f"{count} elements of axis {op.axis} were asked for, it has {size}")


@ROWS.row(MEMORY, Topk)
def memory(op: Topk, made: int, x: Array, k: Array) -> int:
    """The elements in the type and order of the search, where they came from, and what is kept of both"""
    kept = x.size // max(x.shape[op.axis], 1) * min(max(int(k.item()), 0), x.shape[op.axis])
    return x.size * (2 * POSITION + max(POSITION, x.itemsize)) + kept * (POSITION + x.itemsize)


@ROWS.row(COST, Topk)
def cost(op: Topk, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Every element is compared with each of those kept so far."""
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape.volume * op.k}


@ROWS.row(AXES, Topk)
def axes(op: Topk, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the sorted one, which is disconnected."""
    rank = inputs[0].rank
    return AxesMapping.natural_but([rank, 0], [rank, rank], [op.axis])
