"""A constant in a shape that is an input."""

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
from tract_core.ops.expect import arity, vector_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class DynFill(TypedOp):
    """A tensor of the shape that the input holds, all of whose elements are ``value``, which is of rank 0.

    ``sizes``: what the shape will be.
    """

    value: Constant
    sizes: tuple[Dim, ...]
    announces: ClassVar[tuple[str, ...]] = ("sizes",)
    judges: ClassVar[tuple[int, ...]] = (0,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of ``sizes`` and of the value's type. Raises FactError unless the shape is as many integers."""
        (shape,) = arity(self, inputs, 1)
        vector_of(self, shape, len(self.sizes), "shape")
        if self.value.array.ndim != 0:
            raise FactError(f"DynFill: the value is {self.value}, wanted one of rank 0")
        return (TypedFact.of(self.value.datum_type, self.sizes),)


@ROWS.row(REFERENCE, DynFill)
def reference(op: DynFill, shape: Array) -> Array:
    """numpy.full"""
    sizes = sizes_of(shape)
    check_tensor(sizes, op.value.array.itemsize)
    return np.full(sizes, op.value.array, op.value.array.dtype)


def sizes_of(shape: Array) -> list[int]:
    """The sizes that an array holds. Raises RunError for a negative one."""
    sizes = [int(size) for size in shape]
    if any(size < 0 for size in sizes):
        raise RunError(f"the shape is {sizes}: negative dimensions are not allowed")
    return sizes


@ROWS.row(COST, DynFill)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, DynFill)
def axes(op: DynFill, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axes of the output come from nowhere."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
