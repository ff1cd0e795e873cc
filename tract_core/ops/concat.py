"""Put tensors one after the other along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import axis_in, common_size, same_rank, same_type
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class TypedConcat(TypedOp):
    """The inputs, one or more, one after the other along ``axis``."""

    axis: int

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Sizes add up on ``axis`` and agree elsewhere. Raises FactError for types, ranks or sizes that differ."""
        if not inputs:
            raise FactError("TypedConcat takes at least one input, none was given")
        same_type(self, inputs)
        rank = same_rank(self, inputs)
        axis_in(self, self.axis, rank)
        total: Dim = 0
        for fact in inputs:
            total = total + fact.shape[self.axis]
        shape = [total if axis == self.axis else common_size(self, axis, inputs) for axis in range(rank)]
        return (inputs[0].with_shape(shape),)


@ROWS.row(REFERENCE, TypedConcat)
@ROWS.row(SYMBOLIC, TypedConcat)
def reference(op: TypedConcat, *inputs: Array) -> Array:
    """numpy.concatenate"""
    return np.concatenate(inputs, axis=op.axis)


@ROWS.row(COST, TypedConcat)
def cost(op: TypedConcat, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, TypedConcat)
def axes(op: TypedConcat, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one along which they are laid, which is disconnected."""
    return AxesMapping.natural_but([fact.rank for fact in inputs], [outputs[0].rank], [op.axis])
