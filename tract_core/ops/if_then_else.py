"""Run one of two models, as a condition says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tract_core.data.containers import forget_symbols, join_types
from tract_core.dims import Dim, dim_max
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.bodies import OpWithBodies, body_cost, sizes_outside
from tract_core.model.conditions import may_equal, noting
from tract_core.model.fact import TypedFact
from tract_core.model.session import Session
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Branch:
    """A model, and for each of its inputs the position among the operator's inputs of what it reads.

    ``body``: that model.
    """

    body: TypedModel
    inputs: tuple[int, ...]


@frozen
class IfThenElse(OpWithBodies):
    """The outputs of ``then_branch`` where the condition, input 0, holds, else those of ``else_branch``.

    The condition is one boolean (of rank 0, or with axes of size 1); the other inputs are what the branches read.
    ``shapes``: the sizes of each output. Where the branches give different sizes it is a symbol, which gets its value
    when the operator runs; `if_then_else_wiring` makes such symbols.
    """

    then_branch: Branch
    else_branch: Branch
    shapes: tuple[tuple[Dim, ...], ...]
    announces: ClassVar[tuple[str, ...]] = ("shapes",)
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The type that both branches give, in ``shapes``. Raises FactError when branches or inputs do not fit."""
        pairs = _outputs(self.then_branch, self.else_branch, inputs)
        if [len(shape) for shape in self.shapes] != [then.rank for then, _ in pairs]:
            found = "; ".join(str(then) for then, _ in pairs)
            raise FactError(f"IfThenElse: the branches give {found}, shapes of other ranks are announced")
        return tuple(_either(*pair).with_shape(shape) for pair, shape in zip(pairs, self.shapes, strict=True))


def _outputs(
    then_branch: Branch, else_branch: Branch, inputs: Sequence[TypedFact]
) -> list[tuple[TypedFact, TypedFact]]:
    """The facts that both branches give for each output."""
    check_condition(inputs)
    then = branch_facts("then", then_branch, inputs)
    other = branch_facts("else", else_branch, inputs)
    if len(then) != len(other):
        raise FactError(f"IfThenElse: the then branch has {len(then)} outputs, the else branch {len(other)}")
    for slot, (a, b) in enumerate(zip(then, other, strict=True)):
        if join_types(a.datum_type, b.datum_type) is None or a.rank != b.rank:
            raise FactError(
                f"IfThenElse: output {slot} is {a} in the then branch, {b} in the else branch",
                hint="both must have one element type and one rank, unless the condition is known",
            )
    return list(zip(then, other, strict=True))


def check_condition(inputs: Sequence[TypedFact]) -> None:
    """Raises FactError unless the first input is one boolean."""
    if not inputs or not inputs[0].datum_type.is_bool() or any(not may_equal(size, 1) for size in inputs[0].shape):
        raise FactError(f"IfThenElse wants one boolean as condition, found {inputs[0] if inputs else 'no input'}")


def _either(a: TypedFact, b: TypedFact) -> TypedFact:
    """What is known of a tensor of one of two facts, but for its sizes."""
    return a.with_type(join_types(a.datum_type, b.datum_type) or a.datum_type)


def branch_facts(label: str, branch: Branch, inputs: Sequence[TypedFact]) -> list[TypedFact]:
    """What a branch, which ``label`` names, gives for these inputs of the operator. Raises FactError."""
    outside = branch_sizes(label, branch, inputs)
    outer = frozenset[str]().union(*(fact.symbols() for fact in inputs))
    facts = [branch.body.outlet_fact(outlet).substitute(outside) for outlet in branch.body.outputs]
    return [fact.with_type(forget_symbols(fact.datum_type, outer)) for fact in facts]


def branch_sizes(label: str, branch: Branch, inputs: Sequence[TypedFact]) -> dict[str, Dim]:
    """What the symbols of a branch, which ``label`` names, are outside. Raises FactError for inputs that do not fit."""
    if len(branch.inputs) != len(branch.body.inputs) or not all(0 < slot < len(inputs) for slot in branch.inputs):
        raise FactError(
            f"IfThenElse: the {label} branch takes {len(branch.body.inputs)} inputs, reads {list(branch.inputs)} "
            f"of {len(inputs)}"
        )
    outside: dict[str, Dim] = {}
    for slot, source in enumerate(branch.inputs):
        with noting():  # a branch that is not taken wants nothing
            found = sizes_outside(branch.body, slot, inputs[source], outside)
        if found is None:
            wanted = branch.body.outlet_fact(branch.body.inputs[slot])
            raise FactError(f"IfThenElse: the {label} branch wants {wanted} where input {source} is {inputs[source]}")
        outside = found
    return outside


class IfThenElseState:
    """The running branches: each keeps what it keeps, also while the other one runs."""

    def __init__(self, op: IfThenElse, session: Session) -> None:
        self.branches = {True: op.then_branch, False: op.else_branch}
        self.states = {chosen: session.plan_of(branch.body).spawn() for chosen, branch in self.branches.items()}

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs of the branch that is chosen; the other one does not run."""
        chosen = bool(inputs[0].reshape(()))
        given = [inputs[slot] for slot in self.branches[chosen].inputs]
        return tuple(self.states[chosen].run(given, symbols=session.symbols))

    def freeze(self) -> tuple[Any, Any]:
        """A snapshot of both branches, the then branch first."""
        return self.states[True].freeze(), self.states[False].freeze()

    def thaw(self, frozen: tuple[Any, Any]) -> None:
        """Go back to a snapshot."""
        for chosen, content in zip((True, False), frozen, strict=True):
            self.states[chosen].thaw(content)


@ROWS.row(STATE, IfThenElse)
def if_then_else_state(op: IfThenElse, session: Session) -> IfThenElseState:
    """Neither branch has run."""
    return IfThenElseState(op, session)


@ROWS.row(COST, IfThenElse)
def cost(op: IfThenElse, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Of each kind, what the dearer branch costs; the parameters of both."""
    then = body_cost(op.then_branch.body, branch_sizes("then", op.then_branch, inputs))
    other = body_cost(op.else_branch.body, branch_sizes("else", op.else_branch, inputs))
    kinds = dict.fromkeys([*then, *other])
    return {kind: _together(kind, then.get(kind, 0), other.get(kind, 0)) for kind in kinds}


def _together(kind: str, a: Dim, b: Dim) -> Dim:
    return a + b if kind.startswith("PARAMS") else dim_max(a, b)


@ROWS.row(AXES, IfThenElse)
def axes(op: IfThenElse, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing is said: an axis would have to pass both branches in the same way."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
