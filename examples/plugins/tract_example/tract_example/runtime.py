"""A runtime: every node computed by its NumPy meaning, in a plan of its own that keeps every tensor to the end."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tract_core.dims import bind
from tract_core.errors import RunError, TractError, Unsupported
from tract_core.model.op import TypedOp
from tract_core.model.substitute import substitute_in
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.elementwise import Acosh, Asinh, Atanh
from tract_core.ops.source import TypedSource
from tract_core.plugins.keys import REFERENCE, STATE, Array
from tract_core.runtime.binding import bind_inputs
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.schedule import execution_order
from tract_core.runtime.session import OpState, Session

TOO_HARD = (Acosh, Asinh, Atanh)
"""What a toy does not do, so that there is something to say in `tract_example.gaps`."""


@dataclass(frozen=True, slots=True)
class ToyRuntime:
    """Offered as ``toy``."""

    name: str = "toy"

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
        return ToyPlan(model, [node for node in nodes if not isinstance(node.op, TypedSource)])


def _can(model: TypedModel, node: TypedNode) -> bool:
    op = node.op
    known = model.registry[STATE].find(type(op)) or model.registry[REFERENCE].find(type(op))
    return isinstance(op, TypedSource) or (known is not None and not isinstance(op, TOO_HARD))


class ToyPlan:
    """The nodes of a model, in an order of execution."""

    def __init__(self, model: TypedModel, nodes: Sequence[TypedNode]) -> None:
        self.model = model
        self.nodes = nodes
        self.names = [model.outlet_name(outlet) for outlet in model.inputs]
        self.facts = [model.outlet_fact(outlet) for outlet in model.inputs]

    def spawn(self) -> ToyState:
        """A fresh state."""
        return ToyState(self)

    def explain(self) -> Explanation:
        """All nodes go one way."""
        why = "the toy runtime knows no other way"
        return Explanation("toy", tuple(Placement(node.name, node.op.name, "cpu", "numpy", why) for node in self.nodes))


class ToyState:
    """What the nodes with state keep, by node id."""

    def __init__(self, plan: ToyPlan) -> None:
        self.plan = plan
        self.states: dict[int, OpState] = {}

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """One turn. Raises InputError when the inputs do not fit, RunError, with its name, when a node fails."""
        plan = self.plan
        session = Session(plan.model.registry, bind_inputs(plan.names, plan.facts, inputs))
        values = dict(zip(plan.model.inputs, inputs, strict=True))
        for node in plan.nodes:
            outputs = self._compute(session, node, [values[outlet] for outlet in node.inputs])
            for outlet, array in zip(node.outlets(), outputs, strict=True):
                values[outlet] = array
                session.symbols.update(bind(plan.model.outlet_fact(outlet).shape, array.shape, session.symbols))
        return [values[outlet] for outlet in plan.model.outputs]

    def _compute(self, session: Session, node: TypedNode, inputs: list[Array]) -> tuple[Array, ...]:
        place = f"node {node.name!r} ({node.op.name})"
        try:
            with np.errstate(all="ignore"):
                return self._function(session, node)(inputs)
        except TractError as error:
            raise error.at(place) from error.__cause__
        except Exception as error:
            raise RunError(f"{type(error).__name__}: {error}", where=place) from error

    def _function(self, session: Session, node: TypedNode) -> Callable[[list[Array]], tuple[Array, ...]]:
        make = session.registry[STATE].find(type(node.op))
        if make is None:
            return partial(_by_meaning, session, node.op)
        if node.id not in self.states:
            self.states[node.id] = make(node.op, session)
        return partial(self.states[node.id].run, session)

    def freeze(self) -> dict[int, Any]:
        """What each node keeps."""
        return {node_id: state.freeze() for node_id, state in self.states.items()}

    def thaw(self, frozen: dict[int, Any]) -> None:
        """Go back to what each node kept; the snapshot stays as it is."""
        session = Session(self.plan.model.registry)
        self.states = {}
        for node_id, content in frozen.items():
            op = self.plan.model.nodes[node_id].op
            self.states[node_id] = session.registry[STATE][type(op)](op, session)
            self.states[node_id].thaw(copy.deepcopy(content))


def _by_meaning(session: Session, op: TypedOp, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The NumPy meaning of an operator, its symbols replaced by their values."""
    outputs = session.registry[REFERENCE][type(op)](substitute_in(op, session.symbols), *inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)
