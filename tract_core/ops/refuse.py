"""Where a run must not come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tract_core.dims import Dim, symbols_of
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@dataclass(frozen=True, slots=True)
class Refuse(TypedOp):
    """Ends a run that comes here with a RunError: ``reason`` says why, ``hint`` what would be right.

    It stands in a branch that cannot be computed, in the place of all of it, with as many outputs: ``facts``. The error
    tells what the symbols in ``sizes`` are in the run.
    """

    reason: str
    hint: str
    facts: tuple[TypedFact, ...]
    sizes: tuple[Dim, ...] = ()
    pure: ClassVar[bool] = False
    checks: ClassVar[bool] = True
    announces: ClassVar[tuple[str, ...]] = ("facts", "sizes")

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``facts``, which no tensor ever has."""
        arity(self, inputs, 0)
        return self.facts


@dataclass(frozen=True, slots=True)
class RefuseState:
    """Nothing is kept: there is no turn after this one."""

    op: Refuse

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Raises RunError."""
        names = sorted(frozenset[str]().union(*(symbols_of(size) for size in self.op.sizes)))
        here = [f"{name} is {session.symbols[name]}" for name in names if name in session.symbols]
        raise RunError("; ".join([self.op.reason, *filter(None, [", ".join(here)])]), hint=self.op.hint)

    def freeze(self) -> None:
        """Nothing is kept."""

    def thaw(self, frozen: None) -> None:
        """Nothing was kept."""


@ROWS.row(STATE, Refuse)
def refuse_state(op: Refuse, session: Session) -> RefuseState:
    """No run has come here."""
    return RefuseState(op)


@ROWS.row(COST, Refuse)
def cost(op: Refuse, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Nothing is computed."""
    return {}


@ROWS.row(AXES, Refuse)
def axes(op: Refuse, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """There are no inputs that an axis could come from."""
    return AxesMapping.disconnected([], [fact.rank for fact in outputs])
