"""Write elements to positions of a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, Literal, TypeAlias

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_symbolic, same_dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most, may_be_of_shape, may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, integers, same_rank, same_type, wide
from tract_core.ops.extremes import LARGEST, SMALLEST
from tract_core.ops.gather import coordinates, grid, index_bytes, split, want_each_inside, want_inside
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


Reduction: TypeAlias = Literal["none", "add", "mul", "min", "max"]
"""What happens where an element is written: it replaces what is there, or is combined with it."""


@frozen
class ScatterElements(TypedOp):
    """The first input, with each element of the third written to the position on ``axis`` that the second holds.

    Inputs: data, indices, updates. The other coordinates are its own. A negative position counts from the end.
    Without a reduction, the last of several writes to one place holds.
    """

    axis: int
    reduction: Reduction = "none"
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the data. Raises FactError unless all ranks agree and indices and updates are of one shape."""
        x, indices, updates = arity(self, inputs, 3)
        integers(self, indices, "indices")
        _check_types(self, x, updates)
        axis_in(self, self.axis, same_rank(self, inputs))
        if not may_be_of_shape(updates.shape, indices.shape):
            raise FactError(f"ScatterElements: indices {indices} and updates {updates} differ in shape")
        for axis, (size, count) in enumerate(zip(x.shape, indices.shape, strict=True)):
            if axis != self.axis and not may_be_at_most(count, size):
                raise FactError(f"ScatterElements: the indices {indices} go beyond axis {axis} of {x}")
        want_inside(indices.constant, x.shape[self.axis])
        return (x.without_value(),)


@frozen
class ScatterNd(TypedOp):
    """The first input, with slices of the third written to the coordinates in the last axis of the second.

    Inputs: data, indices, updates. A negative coordinate counts from the end. Without a reduction, the last of several
    writes to one place holds.
    """

    reduction: Reduction = "none"
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the data. Raises FactError unless the updates are as many slices as there are coordinates."""
        x, indices, updates = arity(self, inputs, 3)
        integers(self, indices, "indices")
        _check_types(self, x, updates)
        if indices.rank and is_symbolic(indices.shape[-1]):
            # The axes of the updates are those of the indices but one, and those that no coordinate names.
            named = indices.rank - 1 + x.rank - updates.rank
            if not may_equal(indices.shape[-1], named):
                raise FactError(f"ScatterNd: updates {updates} do not fit indices {indices} into {x}")
            indices = indices.with_shape((*indices.shape[:-1], named))
        depth = coordinates(self, indices, x)
        wanted = x.with_shape((*indices.shape[:-1], *x.shape[depth:]))
        if not may_be_of_shape(updates.shape, wanted.shape):
            raise FactError(f"ScatterNd: updates are {updates}, wanted {wanted} for indices {indices} into {x}")
        want_each_inside(inputs[1].constant, x.shape[:depth])
        return (x.without_value(),)


def _check_types(op: ScatterElements | ScatterNd, x: TypedFact, updates: TypedFact) -> None:
    same_type(op, [x, updates])
    if op.reduction != "none" and x.datum_type.storage is DatumType.STRING:
        raise FactError(f"{op.name}: texts cannot be combined by {op.reduction!r}; the data is {x}")


_COMBINE: Final[Mapping[str, Callable[[Array, tuple[Array, ...], Array], None]]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "min": SMALLEST.scattered,
    "max": LARGEST.scattered,
}


@ROWS.row(REFERENCE, ScatterElements)
@ROWS.row(SYMBOLIC, ScatterElements)
def scatter_elements(op: ScatterElements, x: Array, indices: Array, updates: Array) -> Array:
    """x[i, j, ...] = updates, with the coordinate on the axis replaced"""
    return _write(op.reduction, x, grid(op.axis, indices, x.shape[op.axis]), updates)


@ROWS.row(REFERENCE, ScatterNd)
@ROWS.row(SYMBOLIC, ScatterNd)
def scatter_nd(op: ScatterNd, x: Array, indices: Array, updates: Array) -> Array:
    """x[coordinates] = updates"""
    return _write(op.reduction, x, tuple(split(indices, x.shape)), updates)


def _write(reduction: Reduction, x: Array, places: tuple[Array, ...], updates: Array) -> Array:
    if reduction == "none":
        result = x.copy()
        result[places] = updates
        return result
    result = x.astype(x.dtype if x.dtype.kind == "O" else wide(x.dtype))
    _COMBINE[reduction](result, places, updates.astype(result.dtype))
    return result.astype(x.dtype, copy=False)


@ROWS.row(MEMORY, ScatterElements, ScatterNd)
def memory(op: ScatterElements | ScatterNd, made: int, x: Array, indices: Array, updates: Array) -> int:
    """The output, the indices counted from the front, and all of it in the type in which elements are combined"""
    each = 8 if x.dtype.kind == "O" else wide(x.dtype).itemsize
    return made + index_bytes(indices) + (0 if op.reduction == "none" else each * (x.size + 2 * updates.size))


@ROWS.row(COST, ScatterElements, ScatterNd)
def cost(
    op: ScatterElements | ScatterNd, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]
) -> Mapping[str, Dim]:
    """One operation per update that is combined with what is there; writing is free, by convention."""
    if op.reduction == "none":
        return {}
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[2].shape.volume}


@ROWS.row(AXES, ScatterElements)
def scatter_elements_axes(
    op: ScatterElements, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]
) -> AxesMapping:
    """Every axis stays in place, where all inputs have the same size on it, but the one of the positions."""
    x, indices, _ = inputs
    cut = [axis for axis in range(x.rank) if axis == op.axis or not same_dim(x.shape[axis], indices.shape[axis])]
    return AxesMapping.natural_but([x.rank] * 3, [x.rank], cut)


@ROWS.row(AXES, ScatterNd)
def scatter_nd_axes(op: ScatterNd, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes that no coordinate names stay, in data, updates and output; the others are disconnected."""
    depth = coordinates(op, inputs[1], inputs[0])
    mapping = AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
    data, indices, updates = mapping.inputs
    kept = data[depth:]
    updates = updates[: len(updates) - len(kept)] + kept
    return AxesMapping((data, indices, updates), (mapping.outputs[0][:depth] + kept,))
