"""Stretch axes of size 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim, is_one
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, broadcast_shapes
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class MultiBroadcastTo(TypedOp):
    """The input seen in a larger shape: axes of size 1 are repeated, missing ones are added in front."""

    shape: tuple[Dim, ...]
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape of input and target. Raises FactError when the input cannot be stretched to it."""
        (x,) = arity(self, inputs, 1)
        missing = len(self.shape) - x.rank
        if missing < 0:
            raise FactError(f"{self.name}: {x} has more axes than the target [{ShapeFact(self.shape)}]")
        aligned = ShapeFact((1,) * missing + tuple(x.shape))
        return (x.with_shape(broadcast_shapes(self, [aligned, ShapeFact(self.shape)])),)

    def whole_shape(self, x: TypedFact) -> tuple[Dim, ...]:
        """The target with the sizes of ``x`` in the place of its own sizes of 1."""
        aligned = (*(1,) * (len(self.shape) - x.rank), *x.shape)
        return tuple(own if is_one(size) else size for own, size in zip(aligned, self.shape, strict=True))


@ROWS.row(REFERENCE, MultiBroadcastTo)
@ROWS.row(SYMBOLIC, MultiBroadcastTo)
def reference(op: MultiBroadcastTo, x: Array) -> Array:
    """numpy.broadcast_to, in both directions"""
    shape = tuple(int(dim) for dim in op.shape)
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, shape))


@ROWS.row(COST, MultiBroadcastTo)
def cost(op: MultiBroadcastTo, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, MultiBroadcastTo)
def axes(op: MultiBroadcastTo, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes keep their place counted from the end; a stretched one is an axis of its own in the input."""
    natural = AxesMapping.natural([outputs[0].rank], [outputs[0].rank])
    offset = outputs[0].rank - inputs[0].rank
    mapping = natural.with_input(0, natural.inputs[0][offset:])
    for axis, size in enumerate(inputs[0].shape):
        if is_one(size) and not is_one(outputs[0].shape[axis + offset]):
            term = mapping.inputs[0]
            mapping = mapping.with_input(0, term[:axis] + mapping.free_name() + term[axis + 1 :])
    return mapping
