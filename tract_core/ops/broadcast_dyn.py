"""Stretch axes of size 1 to a shape that is an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim, is_symbolic
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, integers
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class DynBroadcast(TypedOp):
    """Like `MultiBroadcastTo`, with the shape as a second input. ``sizes``: what the shape of the output will be."""

    sizes: tuple[Dim, ...]
    announces: ClassVar[tuple[str, ...]] = ("sizes",)
    judges: ClassVar[tuple[int, ...]] = (1,)
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of ``sizes``. Raises FactError when the shape is no list of integers, or the ranks do not fit."""
        x, shape = arity(self, inputs, 2)
        integers(self, shape, "shape")
        length = shape.shape[0] if shape.rank == 1 else None
        if length is None or is_symbolic(length) or max(int(length), x.rank) != len(self.sizes):
            announced = ",".join(map(str, self.sizes))
            raise FactError(f"DynBroadcast: {x} to a shape given as {shape}; [{announced}] was announced")
        return (x.with_shape(self.sizes),)


@ROWS.row(REFERENCE, DynBroadcast)
@ROWS.row(SYMBOLIC, DynBroadcast)
def reference(op: DynBroadcast, x: Array, shape: Array) -> Array:
    """numpy.broadcast_to, in both directions"""
    sizes = stretched(x.shape, shape)
    check_tensor(sizes, x.itemsize)
    return np.broadcast_to(x, sizes)


def stretched(before: Sequence[int], shape: Array) -> tuple[int, ...]:
    """numpy.broadcast_shapes, also of sizes that no array can have. Raises what that raises where they do not fit."""
    wanted = tuple(int(size) for size in shape)
    rank = max(len(before), len(wanted))
    pairs = list(zip((1,) * (rank - len(before)) + tuple(before), (1,) * (rank - len(wanted)) + wanted, strict=True))
    if any(size < 0 for size in wanted) or any(a != b and 1 not in (a, b) for a, b in pairs):
        return np.broadcast_shapes(tuple(before), wanted)
    return tuple(b if a == 1 else a for a, b in pairs)


@ROWS.row(COST, DynBroadcast)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, DynBroadcast)
def axes(op: DynBroadcast, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: any axis may be stretched."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
