"""Pick elements by their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tract_core.dims import Dim, is_symbolic, same_dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, common_size, integers, same_rank
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Gather(TypedOp):
    """The slices of the first input at the positions on ``axis`` that the second holds, whose axes replace that axis.

    A negative position counts from the end.
    """

    axis: int
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The axes of the indices in the place of ``axis``. Raises FactError unless these are integers, and inside."""
        x, indices = arity(self, inputs, 2)
        axis_in(self, self.axis, x.rank)
        want_inside(integers(self, indices, "indices").constant, x.shape[self.axis])
        return (x.with_shape((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :])),)


@frozen
class GatherElements(TypedOp):
    """One element of the first input for each position in the second: it replaces the coordinate on ``axis``.

    A negative position counts from the end.
    """

    axis: int
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The shape of the indices. Raises FactError unless they are integers and lie inside the first input."""
        x, indices = arity(self, inputs, 2)
        integers(self, indices, "indices")
        axis_in(self, self.axis, same_rank(self, inputs))
        for axis, (size, count) in enumerate(zip(x.shape, indices.shape, strict=True)):
            if axis != self.axis and not may_be_at_most(count, size):
                raise FactError(f"GatherElements: the indices {indices} go beyond axis {axis} of {x}")
        want_inside(indices.constant, x.shape[self.axis])
        return (x.with_shape(indices.shape),)


@frozen
class GatherNd(TypedOp):
    """The slices of the first input at the coordinates in the last axis of the second.

    The first ``batch_dims`` axes are common to both inputs. A negative coordinate counts from the end.
    """

    batch_dims: int
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Axes of the indices but the last, then those that no coordinate names. Raises FactError."""
        x, indices = arity(self, inputs, 2)
        integers(self, indices, "indices")
        depth = coordinates(self, indices, x, self.batch_dims)
        for axis in range(self.batch_dims):
            common_size(self, axis, inputs)
        want_each_inside(indices.constant, x.shape[self.batch_dims : self.batch_dims + depth])
        return (x.with_shape((*indices.shape[:-1], *x.shape[self.batch_dims + depth :])),)


def coordinates(op: TypedOp, indices: TypedFact, x: TypedFact, batch_dims: int = 0) -> int:
    """How many coordinates the last axis of ``indices`` holds. Raises FactError unless that many axes are in ``x``."""
    depth = indices.shape[-1] if indices.rank else 0
    if not 0 <= batch_dims < indices.rank or is_symbolic(depth) or not 1 <= int(depth) <= x.rank - batch_dims:
        raise FactError(
            f"{op.name}: indices {indices} with {batch_dims} batch axes do not fit {x}; the last axis of the indices "
            "holds one coordinate per axis of the other input, and its size must be a number, 1 or more"
        )
    return int(depth)


def want_inside(indices: Array | None, size: Dim) -> None:
    """Raises FactError when known positions are outside their axis; where only a run knows its size, that is noted."""
    if indices is not None and indices.size:
        lowest, highest = int(indices.min()), int(indices.max())
        if not may_be_at_most(max(highest + 1, -lowest), size):
            raise FactError(f"index {highest if highest >= -lowest else lowest} is outside an axis of size {size}")


def want_each_inside(coordinates: Array | None, sizes: Sequence[Dim]) -> None:
    """The same for coordinates in the last axis of an array, one for each of the sizes."""
    for place, size in enumerate(sizes):
        want_inside(None if coordinates is None else coordinates[..., place], size)


def inside(indices: Array, axis: int, size: int) -> Array:
    """``indices`` as i64, negative ones counted from the end of ``axis``. Raises RunError when one is outside."""
    found = np.asarray(indices).astype(np.int64)
    outside = found[(found < -size) | (found >= size)]
    if outside.size:
        raise RunError(f"index {outside[0]} is outside axis {axis}, which has size {size}")
    return np.where(found < 0, found + size, found)


@ROWS.row(REFERENCE, Gather)
@ROWS.row(SYMBOLIC, Gather)
def gather(op: Gather, x: Array, indices: Array) -> Array:
    """numpy.take"""
    return x[(slice(None),) * op.axis + (np.asarray(inside(indices, op.axis, x.shape[op.axis])), ...)]


@ROWS.row(REFERENCE, GatherElements)
@ROWS.row(SYMBOLIC, GatherElements)
def gather_elements(op: GatherElements, x: Array, indices: Array) -> Array:
    """x[i, j, ...], with the coordinate on the axis replaced"""
    return x[grid(op.axis, indices, x.shape[op.axis])]


def grid(axis: int, indices: Array, size: int) -> tuple[Array, ...]:
    """For every element of ``indices`` its own coordinates, the one on ``axis`` replaced by the element."""
    found = _coordinates(indices.shape)
    return (*found[:axis], inside(indices, axis, size), *found[axis + 1 :])


def _coordinates(shape: tuple[int, ...]) -> tuple[Array, ...]:
    """For each axis, the position along it, in a form that broadcasts to ``shape``."""
    found: Any = np.indices(shape, sparse=True)
    return found


@ROWS.row(REFERENCE, GatherNd)
@ROWS.row(SYMBOLIC, GatherNd)
def gather_nd(op: GatherNd, x: Array, indices: Array) -> Array:
    """x[coordinates], for each place in the batch"""
    batch = _coordinates(indices.shape[: op.batch_dims])
    extra = indices.ndim - 1 - op.batch_dims
    places = [axis.reshape((*axis.shape, *(1,) * extra)) for axis in batch]
    return x[(*places, *split(indices, x.shape, op.batch_dims), ...)]


def split(indices: Array, shape: Sequence[int], first: int = 0) -> list[Array]:
    """The coordinates in the last axis of ``indices``, one array each, for the axes of ``shape`` from ``first`` on."""
    return [inside(indices[..., i], first + i, shape[first + i]) for i in range(indices.shape[-1])]


@ROWS.row(MEMORY, Gather, GatherElements, GatherNd)
def memory(op: TypedOp, made: int, x: Array, indices: Array) -> int:
    """The output, and the indices counted from the front"""
    return made + index_bytes(indices)


def index_bytes(indices: Array) -> int:
    """What `inside` makes of indices: three positions for each, and whether it is negative."""
    return 25 * indices.size


@ROWS.row(COST, Gather, GatherElements, GatherNd)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Gather)
def gather_axes(op: Gather, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis of both inputs goes on, but the one that is picked from."""
    x, indices = names(inputs)
    return AxesMapping((x, indices), (x[: op.axis] + indices + x[op.axis + 1 :],))


@ROWS.row(AXES, GatherElements)
def gather_elements_axes(op: GatherElements, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes of the indices go on, together with those of the first input, where these have the same size."""
    x, indices = names(inputs)
    output = indices
    for axis, (size, count) in enumerate(zip(inputs[0].shape, inputs[1].shape, strict=True)):
        if axis == op.axis:
            continue
        if same_dim(size, count):
            x = x[:axis] + indices[axis] + x[axis + 1 :]
        else:
            output = output[:axis] + AxesMapping((x, indices), (output,)).free_name() + output[axis + 1 :]
    return AxesMapping((x, indices), (output,))


@ROWS.row(AXES, GatherNd)
def gather_nd_axes(op: GatherNd, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Batch axes go on together, then those of the indices but the last, then those that no coordinate names."""
    x, indices = names(inputs)
    x = indices[: op.batch_dims] + x[op.batch_dims :]
    depth = coordinates(op, inputs[1], inputs[0], op.batch_dims)
    return AxesMapping((x, indices), (indices[:-1] + x[op.batch_dims + depth :],))


def names(inputs: Sequence[TypedFact]) -> tuple[str, ...]:
    """Names of axes, all different."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], []).inputs
