"""Integers as vectors with one element that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, integers, scalar
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class OneHot(TypedOp):
    """A new axis of size ``dim`` at ``axis``: ``on`` at the place that the input names, ``off`` at all others.

    A negative place counts from the end; a place outside is nowhere. ``off`` and ``on`` are of rank 0.
    """

    axis: int
    dim: Dim
    off: Constant
    on: Constant

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One more axis, in the type of the values. Raises FactError for indices or values of a wrong type."""
        (indices,) = arity(self, inputs, 1)
        return (_fact(self, indices),)


@frozen
class DynOneHot(TypedOp):
    """Like `OneHot`, with the size of the new axis as a second input, of rank 0. ``dim``: what that will be.

    ``off``, ``on``: the elements of the output.
    """

    axis: int
    dim: Dim
    off: Constant
    on: Constant
    announces: ClassVar[tuple[str, ...]] = ("dim",)
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """As `OneHot`. Raises FactError also when the size is no integer of rank 0."""
        indices, dim = arity(self, inputs, 2)
        scalar(self, integers(self, dim, "size"), "size")
        return (_fact(self, indices),)


def _fact(op: OneHot | DynOneHot, indices: TypedFact) -> TypedFact:
    integers(op, indices, "indices")
    axis_in(op, op.axis, indices.rank + 1)
    if op.off.datum_type != op.on.datum_type or op.off.array.ndim or op.on.array.ndim:
        raise FactError(f"{op.name}: values are {op.off} and {op.on}, wanted two of rank 0 and of one type")
    return TypedFact.of(op.off.datum_type, (*indices.shape[: op.axis], op.dim, *indices.shape[op.axis :]))


@ROWS.row(REFERENCE, OneHot)
def one_hot(op: OneHot, indices: Array) -> Array:
    """On where the place is the index, else off"""
    return _one_hot(op, indices, int(op.dim))


@ROWS.row(REFERENCE, DynOneHot)
def dyn_one_hot(op: DynOneHot, indices: Array, dim: Array) -> Array:
    """On where the place is the index, else off"""
    return _one_hot(op, indices, int(dim))


def _one_hot(op: OneHot | DynOneHot, indices: Array, dim: int) -> Array:
    check_size(dim)
    check_tensor((*indices.shape, dim), max(op.on.array.itemsize, 8))
    wanted = np.expand_dims(indices.astype(np.int64), op.axis)
    places = np.arange(dim).reshape([dim if axis == op.axis else 1 for axis in range(wanted.ndim)])
    return np.where((wanted == places) | (wanted + dim == places), op.on.array, op.off.array)


def check_size(dim: int) -> None:
    """Raises RunError for an axis of a negative size."""
    if dim < 0:
        raise RunError(f"the size of the new axis is {dim}, wanted one that is not negative")


@ROWS.row(COST, OneHot, DynOneHot)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, OneHot, DynOneHot)
def axes(op: OneHot | DynOneHot, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis goes on; the new one comes from nowhere."""
    mapping = AxesMapping.natural([fact.rank for fact in inputs], [inputs[0].rank])
    term = mapping.outputs[0]
    return mapping.with_output(0, term[: op.axis] + mapping.free_name() + term[op.axis :])
