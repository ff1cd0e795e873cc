"""The interpreter: run a typed model node by node, with the NumPy meaning of each operator.

A plan is immutable and may be shared between threads; everything that changes is in its states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tract_core.data import Constant
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.bodies import bodies_of
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.plugins.keys import REFERENCE, STATE, Array
from tract_core.runtime.explain import Explanation, by_numpy
from tract_core.runtime.held import Held, owners_of
from tract_core.runtime.host import Bodies, HostNode, HostState, host_nodes
from tract_core.runtime.observed import ObservedState
from tract_core.runtime.parts import Part
from tract_core.runtime.schedule import last_uses
from tract_core.runtime.stopwatch import timed_run
from tract_core.runtime.turn import Turn

if TYPE_CHECKING:
    from tract_core.model.session import BodyPlan
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.registry import Registry
    from tract_core.runtime.protocol import Observer, Timing


@frozen
class Step:
    """One node, in the order in which nodes run. ``dying``: the tensors that may be freed once it has run."""

    host: HostNode
    dying: tuple[OutletId, ...]


class TypedSimplePlan:
    """An execution plan for a `TypedModel`.

    Raises Unsupported, naming every operator concerned, when one has no NumPy meaning.
    """

    def __init__(self, model: TypedModel) -> None:
        refuse_missing(model)
        self.model = model
        self.inputs = list(model.inputs)
        self.outputs = list(model.outputs)
        self.constants: dict[OutletId, Array] = {}
        self.steps = self._steps()
        self.turn = Turn(model, [step.host for step in self.steps])
        self.input_names, self.input_facts = self.turn.inputs.names, self.turn.inputs.facts
        self.bodies = Bodies(TypedSimplePlan)
        self.owners = owners_of(self.constants.values())
        """The ids of the owners of constants."""

    def _steps(self) -> list[Step]:
        nodes = host_nodes(self.model)
        for node in nodes:
            if isinstance(node.op, Const) and isinstance(node.op.value, Constant):
                self.constants[OutletId(node.node)] = node.op.value.array
        dying = last_uses(self.model, [*(outlet.node for outlet in self.inputs), *(node.node for node in nodes)])
        running = [node for node in nodes if OutletId(node.node) not in self.constants]
        return [
            Step(node, tuple(outlet for outlet in dying.get(node.node, ()) if outlet not in self.constants))
            for node in running
        ]

    @property
    def lent(self) -> range:
        """Outputs that may share memory with an input: all, as an operator may return its input, or a view on it."""
        return range(len(self.outputs))

    def spawn(self) -> TypedSimpleState:
        """A fresh state."""
        return TypedSimpleState(self)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> TypedSimpleState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        return TypedSimpleState(self, plan_of)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """One turn on a fresh state."""
        return self.spawn().run(inputs)

    def spawn_observed(self, observe: Observer) -> ObservedState:
        """A fresh state, in whose turns ``observe`` sees the outputs of every node, and may exchange them."""
        return ObservedState(self.spawn(), observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and how long each node took, in bodies too."""
        return timed_run(self, inputs)

    def explain(self) -> Explanation:
        """Every node runs on the CPU, by its NumPy meaning."""
        return Explanation("reference", tuple(by_numpy(self.model, "the reference runtime knows no other way")))


def refuse_missing(model: TypedModel) -> None:
    """Raises Unsupported, naming every operator that has no NumPy meaning."""
    missing = missing_meanings(model, model.registry)
    if missing:
        listed = ", ".join(f"{op} (node {name!r})" for op, name in missing.items())
        raise Unsupported(f"no NumPy meaning for {listed}", hint="'tract plugins' shows what is installed")


def missing_meanings(model: TypedModel, registry: Registry) -> dict[str, str]:
    """The operators without NumPy meaning that the outputs need, in bodies too, each with the name of a node."""
    missing: dict[str, str] = {}
    for node_id in model.eval_order():
        node, kind = model.nodes[node_id], type(model.nodes[node_id].op)
        for body in bodies_of(node.op):
            for op, name in missing_meanings(body, registry).items():
                missing.setdefault(op, f"{node.name}/{name}")
        if kind is not TypedSource and registry[REFERENCE].find(kind) is None and registry[STATE].find(kind) is None:
            missing.setdefault(node.op.name, node.name)
    return missing


class TypedSimpleState:
    """An execution state: what the nodes of a `TypedSimplePlan` keep between turns."""

    def __init__(self, plan: TypedSimplePlan, plan_of: Callable[[TypedModel], BodyPlan] | None = None) -> None:
        """``plan_of``: gives the plan of a body, where that is not one that ``plan`` makes itself."""
        self.plan = plan
        self._host = HostState(plan.model, plan_of or plan.bodies)

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
        observe: Observer | None = None,
    ) -> list[Array]:
        """One turn. ``out``: arrays to fill. ``symbols``: the values of the symbols of the models around this one.

        Raises InputError when the arrays do not fit, RunError, with the node's name, when a node fails.
        """
        plan, host, turn = self.plan, self._host, self.plan.turn
        turn.begin(host, inputs, out, symbols)
        values: dict[OutletId, Array] = dict(plan.constants)
        values.update(zip(plan.inputs, inputs, strict=True))
        with turn.going(host) as budget:
            held = Held(budget.room, plan.owners, owners_of(inputs))
            for step in plan.steps:
                node = step.host
                outputs = node.run(host, [values[outlet] for outlet in node.inputs])
                if node.binds:
                    turn.check_after(node, host.session.symbols)
                given = {OutletId(node.node, slot): array for slot, array in enumerate(outputs)}
                if observe is not None:
                    given.update(observe(Part((node.node,)), given) or {})
                values.update(given)
                for array in given.values():
                    held.take(array)
                for outlet in step.dying:
                    held.let_go(values.pop(outlet))
        outputs = [values[outlet] for outlet in plan.outputs]
        return outputs if out is None else turn.outputs.fill(out, outputs)

    def reset(self) -> None:
        """Back to a fresh state."""
        self._host.reset()

    def freeze(self) -> TypedFrozenSimpleState:
        """A snapshot that can be pickled, sent elsewhere, and unfrozen any number of times."""
        return TypedFrozenSimpleState(self._host.freeze())

    def thaw(self, frozen: TypedFrozenSimpleState) -> None:
        """Go back to a snapshot of a state of the same model."""
        self._host.thaw(frozen.states, (step.host for step in self.plan.steps))


@frozen
class TypedFrozenSimpleState:
    """An execution state, frozen: what each stateful node kept, by node id."""

    states: dict[int, Any]


TypedRunnableModel = TypedSimplePlan
RunnableModel = TypedSimplePlan
