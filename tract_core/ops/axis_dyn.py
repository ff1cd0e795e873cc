"""Move axes that are an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim, is_symbolic, same_dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, integers
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class DynMoveAxes(TypedOp):
    """The axes that the second input holds moved to the end, in the order in which they stand there.

    An axis that is negative counts from the end. ``back``: the other way, from the end to those places. ``sizes``: what
    the shape of the output will be.
    """

    sizes: tuple[Dim, ...]
    back: bool = False
    announces: ClassVar[tuple[str, ...]] = ("sizes",)
    judges: ClassVar[tuple[int, ...]] = (1,)
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of ``sizes``. Raises FactError unless the axes are a list of integers, at most one per axis."""
        x, axes = arity(self, inputs, 2)
        integers(self, axes, "axes")
        count = axes.shape[0] if axes.rank == 1 else None
        if count is None or is_symbolic(count) or int(count) > x.rank:
            raise FactError(f"DynMoveAxes: the axes are {axes}, wanted a list of at most {x.rank}, for {x}")
        if len(self.sizes) != x.rank or same_dim(x.with_shape(self.sizes).shape.volume, x.shape.volume) is False:
            raise FactError(f"DynMoveAxes: [{','.join(map(str, self.sizes))}] was announced for {x}")
        return (x.with_shape(self.sizes),)


def order_of(axes: Sequence[int], rank: int, *, back: bool = False) -> tuple[int, ...]:
    """For each output axis, the input axis that it was. Raises FactError for an axis that is not there, or is twice."""
    places = [axis + rank if axis < 0 else axis for axis in axes]
    outside = next((axis for axis, place in zip(axes, places, strict=True) if not 0 <= place < rank), None)
    if outside is not None:
        raise FactError(f"axis {outside} is outside a tensor of rank {rank}")
    if len(set(places)) < len(places):
        raise FactError(f"axes {list(axes)} of a tensor of rank {rank} name one twice")
    order = [*(axis for axis in range(rank) if axis not in places), *places]
    return tuple(order.index(axis) for axis in range(rank)) if back else tuple(order)


@ROWS.row(REFERENCE, DynMoveAxes)
@ROWS.row(SYMBOLIC, DynMoveAxes)
def reference(op: DynMoveAxes, x: Array, axes: Array) -> Array:
    """numpy.transpose"""
    return np.transpose(x, order_now(op, x.ndim, axes))


def order_now(op: DynMoveAxes, rank: int, axes: Array) -> tuple[int, ...]:
    """For each output axis, the input axis that it was. Raises RunError, as `order_of` raises FactError."""
    try:
        return order_of([int(axis) for axis in axes], rank, back=op.back)
    except FactError as error:
        raise RunError(error.problem) from None


@ROWS.row(COST, DynMoveAxes)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, DynMoveAxes)
def move_axes(op: DynMoveAxes, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: any axis may move."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
