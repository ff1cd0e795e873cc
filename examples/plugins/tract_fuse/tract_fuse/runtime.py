"""The runtime: groups go through in blocks, every other node is left to the node executor of the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tract_core.compile.groups import Group
from tract_core.limits import check_run_time
from tract_core.model.graph import OutletId
from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.held import Held, owners_of
from tract_core.runtime.host import Bodies, HostNode, host_nodes
from tract_core.runtime.parts import Part, bodies_within
from tract_core.runtime.plan import TypedSimplePlan, TypedSimpleState
from tract_core.runtime.protocol import Observer
from tract_fuse.groups import Blocks, FuseGrouper
from tract_fuse.memory import Memory, apart


@dataclass(frozen=True, slots=True)
class FuseRuntime:
    """Offered as ``fuse``."""

    name: ClassVar[str] = "fuse"
    block: int = field(default=8192, metadata={"doc": "elements that go through a group together"})

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ValueError(f"block is {self.block}, wanted 1 or more")

    def why_unusable(self) -> str | None:
        """``None``: it needs no device."""
        return None

    def prepare(self, model: TypedModel) -> FusePlan:
        """The plan of a model. Raises Unsupported, naming every operator that has no NumPy meaning."""
        return FusePlan(model, self.block)


class FusePlan(TypedSimplePlan):
    """The groups of a model, in order, and those of its bodies, which run alike."""

    def __init__(self, model: TypedModel, block: int) -> None:
        super().__init__(model)
        self.block = block
        self.nodes = {step.host.node: step.host for step in self.steps}
        self.groups = FuseGrouper(model, list(self.nodes.values())).found()
        self.memory = Memory(model, self.groups)
        self.bodies = Bodies(lambda body: FusePlan(body, block))

    def spawn(self) -> FuseState:
        """A fresh state."""
        return self.spawn_with(self.bodies)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> FuseState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        return FuseState(self, plan_of)

    def explain(self) -> Explanation:
        """Each group, those of bodies too."""
        found = (
            Placement.of(self.model, group.nodes, "cpu", group.kind, "".join(group.notes()), body=path)
            for path, body in bodies_within(self.model)
            for group in FuseGrouper(body, host_nodes(body)).found()
        )
        return Explanation("fuse", tuple(found))


class FuseState(TypedSimpleState):
    """What the nodes with state keep."""

    plan: FusePlan

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
        observe: Observer | None = None,
    ) -> list[Array]:
        """One turn. ``symbols``: values known from the model around a body.

        Raises InputError when the arrays do not fit, RunError, with its name, when a node fails.
        """
        plan, turn, host = self.plan, self.plan.turn, self._host
        bound = turn.begin(host, inputs, out, symbols)
        values = {**dict(zip(plan.inputs, inputs, strict=True)), **plan.constants}
        with turn.going() as budget:
            held = Held(budget.room, owners_of(inputs), plan.owners)
            memory, places = plan.memory.arena(bound)
            held.take(memory)
            for group, dying in zip(plan.groups, plan.memory.dying, strict=False):
                given = self._compute(group, values, memory, places)
                turn.check_after(plan.nodes[group.nodes[-1]], host.session.symbols)
                if observe is not None:
                    shown = {outlet: apart(array, memory) for outlet, array in given.items()}
                    given.update(observe(Part(group.nodes), shown) or {})
                values.update(given)
                for array in given.values():
                    held.take(array)
                for outlet in dying:
                    held.let_go(values.pop(outlet))
        outputs = [values[outlet] for outlet in plan.outputs]
        return outputs if out is None else turn.outputs.fill(out, outputs)

    def _compute(
        self, group: Group, values: Mapping[OutletId, Array], memory: Array, places: Mapping[OutletId, Array]
    ) -> dict[OutletId, Array]:
        nodes = [self.plan.nodes[number] for number in group.nodes]
        outlets = self.plan.model.nodes[group.nodes[-1]].outlets()
        if isinstance(group, Blocks) and in_blocks(nodes, values, places[outlets[0]], self.plan.block):
            return {outlets[0]: places[outlets[0]]}
        inside = dict(values)
        for node in nodes:  # where blocks went wrong, this tells in which node
            # what has a state may keep its inputs
            inputs = [apart(inside[one], memory) if node.state else inside[one] for one in node.inputs]
            outputs = [apart(array, memory) for array in node.run(self._host, inputs)]
            inside.update(zip(self.plan.model.nodes[node.node].outlets(), outputs, strict=True))
        return {outlet: inside[outlet] for outlet in outlets}


def in_blocks(nodes: Sequence[HostNode], values: Mapping[OutletId, Array], result: Array, block: int) -> bool:
    """Compute a group of element-wise nodes in blocks of so many elements. Returns whether each gave what it should."""
    flat = {outlet: _flat(values[outlet]) for node in nodes for outlet in node.inputs if outlet in values}
    places = result.reshape(-1)
    for start in range(0, places.size, block):
        check_run_time()
        span = slice(start, start + block)
        parts: dict[OutletId, Any] = {one: x if x.size == 1 else x[span] for one, x in flat.items()}
        try:
            for node in nodes:
                assert node.meaning is not None  # `FuseGrouper` asks for it
                parts[OutletId(node.node)] = node.meaning(node.op, *(parts[one] for one in node.inputs))
        except Exception:
            return False
        part: Any = parts[OutletId(nodes[-1].node)]
        if not isinstance(part, np.ndarray) or part.dtype != places.dtype or part.shape != places[span].shape:
            return False
        places[span] = part
    return True


def _flat(array: Array) -> Array:
    """The elements in order, to which nobody can write."""
    found = np.ascontiguousarray(array).reshape(-1)
    found.flags.writeable = False
    return found
