"""Where a run must not come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tract_core.dims import Dim
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@dataclass(frozen=True, slots=True)
class Refuse(TypedOp):
    """Ends a run that comes here with a RunError: ``reason`` says why, ``hint`` what would be right.

    It stands in a branch that cannot be computed, in the place of all of it, with as many outputs: ``facts``.
    """

    reason: str
    hint: str
    facts: tuple[TypedFact, ...]
    pure: ClassVar[bool] = False
    checks: ClassVar[bool] = True
    announces: ClassVar[tuple[str, ...]] = ("facts",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``facts``, which no tensor ever has."""
        arity(self, inputs, 0)
        return self.facts


@ROWS.row(REFERENCE, Refuse)
def reference(op: Refuse, *inputs: Array) -> Array:
    """Raises RunError"""
    raise RunError(op.reason, hint=op.hint)


@ROWS.row(COST, Refuse)
def cost(op: Refuse, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Nothing is computed."""
    return {}


@ROWS.row(AXES, Refuse)
def axes(op: Refuse, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """There are no inputs that an axis could come from."""
    return AxesMapping.disconnected([], [fact.rank for fact in outputs])
