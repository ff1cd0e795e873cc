"""Keep the elements of an axis that a mask selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Compress(TypedOp):
    """The elements of ``axis`` at which the second input, booleans of rank 1, is true. It may be shorter than the axis.

    ``count``: how many there will be; a fresh symbol, as a rule.
    """

    axis: int
    count: Dim
    announces: ClassVar[tuple[str, ...]] = ("count",)
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``count`` elements on the axis. Raises FactError unless the condition is booleans of rank 1."""
        x, condition = arity(self, inputs, 2)
        axis_in(self, self.axis, x.rank)
        if not condition.datum_type.is_bool() or condition.rank != 1:
            raise FactError(f"Compress wants booleans of rank 1 as condition, found {condition}")
        if not may_be_at_most(condition.shape[0], x.shape[self.axis]):
            raise FactError(f"Compress: the condition {condition} is longer than axis {self.axis} of {x}")
        return (x.with_shape((*x.shape[: self.axis], self.count, *x.shape[self.axis + 1 :])),)


def check_condition(op: Compress, shape: Sequence[int], condition: Sequence[int]) -> None:
    """Raises RunError where the condition is longer than the axis. ``shape``, ``condition``: of the two inputs."""
    if condition[0] > shape[op.axis]:
        raise RunError(f"the condition has {condition[0]} elements, axis {op.axis} only {shape[op.axis]}")


@ROWS.row(REFERENCE, Compress)
def reference(op: Compress, x: Array, condition: Array) -> Array:
    """numpy.compress"""
    check_condition(op, x.shape, condition.shape)
    return np.compress(condition, x, op.axis)


@ROWS.row(COST, Compress)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Compress)
def axes(op: Compress, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place, but the one that is thinned out, which is disconnected."""
    mapping = AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis])
    return AxesMapping((*mapping.inputs, mapping.free_name()), mapping.outputs)
