"""Operators that refuse runs: where a tensor is not what was said of it, and where a run must not come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tract_core.dims import Dim, is_symbolic, symbols_of
from tract_core.dims.names import write_name
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
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
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input, with the numbers that it must have. Raises FactError for another rank."""
        (x,) = arity(self, inputs, 1)
        if x.rank != len(self.shape):
            raise FactError(f"CheckShape: {x} has {x.rank} axes, {len(self.shape)} are wanted")
        pairs = zip(x.shape, self.shape, strict=True)
        return (x.with_shape(size if wanted is None or is_symbolic(wanted) else wanted for size, wanted in pairs),)


@frozen
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

    @property
    def keeps(self) -> bool:
        """There is no turn after the one that comes here."""
        return False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``facts``, which no tensor ever has."""
        arity(self, inputs, 0)
        return self.facts


@frozen
class RefuseState:
    """Nothing is kept: there is no turn after this one. ``op``: what refuses."""

    op: Refuse

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Raises RunError."""
        names = sorted(frozenset[str]().union(*(symbols_of(size) for size in self.op.sizes)))
        here = [f"{write_name(name)} is {session.symbols[name]}" for name in names if name in session.symbols]
        raise RunError("; ".join([self.op.reason, *filter(None, [", ".join(here)])]), hint=self.op.hint)

    def freeze(self) -> None:
        """Nothing is kept."""

    def thaw(self, frozen: None) -> None:
        """Nothing was kept."""


@ROWS.row(STATE, Refuse)
def refuse_state(op: Refuse, session: Session) -> RefuseState:
    """No run has come here."""
    return RefuseState(op)


@ROWS.row(REFERENCE, CheckShape)
def reference(op: CheckShape, x: Array) -> Array:
    """X"""
    if any(wanted not in (None, size) for size, wanted in zip(x.shape, op.shape, strict=True)):
        wanted = ",".join("_" if size is None else str(size) for size in op.shape)
        raise RunError(f"its shape is {list(x.shape)}, it should be [{wanted}]: {op.reason}", hint=op.hint)
    return x


@ROWS.row(COST, CheckShape, Refuse)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, CheckShape)
def axes(op: CheckShape, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; of one whose size is checked, a part would not do."""
    checked = [axis for axis, wanted in enumerate(op.shape) if wanted is not None]
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], checked)


@ROWS.row(AXES, Refuse)
def refuse_axes(op: Refuse, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """There are no inputs that an axis could come from."""
    return AxesMapping.disconnected([], [fact.rank for fact in outputs])
