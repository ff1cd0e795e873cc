"""Determinants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, wide
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Det(TypedOp):
    """The determinants of the square matrices on the last two axes. f16 and bf16 are computed in f32."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input without its last two axes. Raises FactError unless these are of one size, and hold floats."""
        (x,) = arity(self, inputs, 1)
        if x.rank < 2 or not may_equal(x.shape[-2], x.shape[-1]):
            raise FactError(f"Det wants square matrices on the last two axes, found {x}")
        return (float_type(self, x).with_shape(x.shape[:-2]),)


@ROWS.row(REFERENCE, Det)
def reference(op: Det, x: Array) -> Array:
    """numpy.linalg.det"""
    matrices: Array = x.astype(wide(x.dtype), copy=False)
    return np.asarray(np.linalg.det(matrices)).astype(x.dtype)


@ROWS.row(COST, Det)
def cost(op: Det, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """By elimination, a third of the cube of the size, per matrix."""
    (x,) = inputs
    size = x.shape[-1]
    return {f"FMA({x.datum_type.storage.name})": product(x.shape[:-2]) * (size * size * size // 3)}


@ROWS.row(AXES, Det)
def axes(op: Det, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axes before the matrices stay in place; those of the matrices end."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
