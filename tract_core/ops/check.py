"""Operators that hand on what they get, and refuse a run in which it is not what was said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tract_core.dims import Dim, is_symbolic
from tract_core.errors import FactError, RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@dataclass(frozen=True, slots=True)
class CheckShape(TypedOp):
    """The input, in a run in which it has this shape. Any other run is refused.

    ``shape``: one size per axis, ``None`` where any will do. ``reason``: who says so, as ``"the file says so"``, and
    ``hint``: what to do where it is wrong.
    """

    shape: tuple[Dim | None, ...]
    reason: str
    hint: str
    pure: ClassVar[bool] = False
    checks: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input, with the numbers that it must have. Raises FactError for another rank."""
        (x,) = arity(self, inputs, 1)
        if x.rank != len(self.shape):
            raise FactError(f"CheckShape: {x} has {x.rank} axes, {len(self.shape)} are wanted")
        pairs = zip(x.shape, self.shape, strict=True)
        return (x.with_shape(size if wanted is None or is_symbolic(wanted) else wanted for size, wanted in pairs),)


@ROWS.row(REFERENCE, CheckShape)
def reference(op: CheckShape, x: Array) -> Array:
    """X"""
    if any(wanted not in (None, size) for size, wanted in zip(x.shape, op.shape, strict=True)):
        wanted = ",".join("_" if size is None else str(size) for size in op.shape)
        raise RunError(f"its shape is {list(x.shape)}, it should be [{wanted}]: {op.reason}", hint=op.hint)
    return x


@ROWS.row(COST, CheckShape)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, CheckShape)
def axes(op: CheckShape, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; of one whose size is checked, a part would not do."""
    checked = [axis for axis, wanted in enumerate(op.shape) if wanted is not None]
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], checked)
