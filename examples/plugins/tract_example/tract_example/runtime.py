"""A runtime: every node computed by its NumPy meaning, in a plan of its own that keeps every tensor to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tract_core.errors import Unsupported
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.elementwise import Acosh, Asinh, Atanh
from tract_core.plugins.keys import REFERENCE, STATE, Array
from tract_core.runtime.explain import Explanation, by_numpy
from tract_core.runtime.held import Held, owners_of
from tract_core.runtime.host import Bodies, HostState, host_nodes
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.schedule import execution_order
from tract_core.runtime.turn import Turn

TOO_HARD = (Acosh, Asinh, Atanh)
"""What a toy does not do, so that there is something to say in `tract_example.gaps`."""


@dataclass(frozen=True, slots=True)
class ToyRuntime:
    """Offered as ``toy``."""

    name: ClassVar[str] = "toy"

    def why_unusable(self) -> str | None:
        """``None``: it needs no device."""
        return None

    def prepare(self, model: TypedModel) -> ToyPlan:
        """The plan of a model. Raises Unsupported, with the names of all operators that a toy does not do."""
        nodes = [model.nodes[node_id] for node_id in execution_order(model)]
        refused = sorted({node.op.name for node in nodes if not _can(model, node)})
        if refused:
            raise Unsupported(
                f"the toy runtime does not do {', '.join(refused)}", hint="ask for the runtime 'reference'"
            )
        return ToyPlan(model)


def _can(model: TypedModel, node: TypedNode) -> bool:
    op = node.op
    known = model.registry[STATE].find(type(op)) or model.registry[REFERENCE].find(type(op))
    return isinstance(op, TypedSource) or (known is not None and not isinstance(op, TOO_HARD))


class ToyPlan:
    """The nodes of a model, in an order of execution."""

    def __init__(self, model: TypedModel) -> None:
        self.model = model
        self.nodes = host_nodes(model)
        self.turn = Turn(model, self.nodes)
        self.bodies = Bodies(TypedSimplePlan)  # the interpreter runs what is inside loops and branches

    @property
    def lent(self) -> Sequence[int]:
        """Any output may be an input, or a view on it, as NumPy gives views."""
        return range(len(self.model.outputs))

    def spawn(self) -> ToyState:
        """A fresh state."""
        return ToyState(self)

    def explain(self) -> Explanation:
        """All nodes go one way."""
        return Explanation("toy", tuple(by_numpy(self.model, "the toy runtime knows no other way")))


class ToyState:
    """What the nodes with state keep."""

    def __init__(self, plan: ToyPlan) -> None:
        self.plan = plan
        self.host = HostState(plan.model, plan.bodies)

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
    ) -> list[Array]:
        """One turn. ``symbols``: values that no input tells.

        Raises InputError when the arrays do not fit, RunError, with its name, when a node fails.
        """
        plan, turn = self.plan, self.plan.turn
        turn.begin(self.host, inputs, out, symbols)
        values = dict(zip(plan.model.inputs, inputs, strict=True))
        with turn.going() as budget:
            held = Held(budget.room, owners_of(inputs))
            for node in plan.nodes:
                outputs = node.run(self.host, [values[outlet] for outlet in node.inputs])
                turn.check_after(node, self.host.session.symbols)
                values.update(zip(plan.model.nodes[node.node].outlets(), outputs, strict=True))
                for array in outputs:
                    held.take(array)
        outputs = [values[outlet] for outlet in plan.model.outputs]
        return outputs if out is None else turn.outputs.fill(out, outputs)

    def reset(self) -> None:
        """The nodes keep nothing from the turns so far."""
        self.host.reset()

    def freeze(self) -> dict[int, Any]:
        """What each node keeps."""
        return self.host.freeze()

    def thaw(self, frozen: dict[int, Any]) -> None:
        """Go back to what each node kept; the snapshot stays as it is."""
        self.host.thaw(frozen, self.plan.nodes)
