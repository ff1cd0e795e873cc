"""The runtime: chains go through in blocks, every other node is left to the node executor of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tract_core.limits import check_room, check_run_time
from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.held import Held, owners_of
from tract_core.runtime.host import Bodies, HostNode, HostState
from tract_core.runtime.observed import ObservedState
from tract_core.runtime.parts import BodyPath, Part, bodies_within
from tract_core.runtime.plan import refuse_missing
from tract_core.runtime.protocol import Observer, Timing
from tract_core.runtime.stopwatch import timed_run
from tract_core.runtime.turn import Turn
from tract_fuse.chains import is_element_wise, steps_of


@dataclass(frozen=True, slots=True)
class FuseRuntime:
    """Offered as ``fuse``."""

    name: ClassVar[str] = "fuse"
    block: int = field(default=8192, metadata={"doc": "elements that go through a chain together"})

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ValueError(f"block is {self.block}, wanted 1 or more")

    def why_unusable(self) -> str | None:
        """``None``: it needs no device."""
        return None

    def prepare(self, model: TypedModel) -> FusePlan:
        """The plan of a model. Raises Unsupported, naming every operator that has no NumPy meaning."""
        refuse_missing(model)
        return FusePlan(model, self.block)


class FusePlan:
    """The steps of a model, in order, and those of its bodies, which run alike."""

    def __init__(self, model: TypedModel, block: int) -> None:
        self.model = model
        self.block = block
        self.steps = steps_of(model)
        self.parts = [Part(tuple(node.node for node in step)) for step in self.steps]
        self.turn = Turn(model, [node for step in self.steps for node in step])
        self.bodies = Bodies(lambda body: FusePlan(body, block))

    @property
    def lent(self) -> Sequence[int]:
        """Any output may be an input, or a view on it, as NumPy gives views."""
        return range(len(self.model.outputs))

    def spawn(self) -> FuseState:
        """A fresh state."""
        return self.spawn_with(self.bodies)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> FuseState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        return FuseState(self, plan_of)

    def spawn_observed(self, observe: Observer) -> ObservedState:
        """A fresh state, in whose turns ``observe`` sees what leaves every step, and may exchange it."""
        return ObservedState(self.spawn(), observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and what each step took in it, those of bodies too."""
        return timed_run(self, inputs)

    def explain(self) -> Explanation:
        """Each step, those of bodies too."""
        found = [one for path, body in bodies_within(self.model) for one in _placements(self.model, body, path)]
        return Explanation("fuse", tuple(found))


def _placements(model: TypedModel, body: TypedModel, path: BodyPath) -> Iterator[Placement]:
    for step in steps_of(body):
        how, why = "numpy", "it is left to the node executor"
        if is_element_wise(step[0]):
            how, why = "blocks", "each element comes out of one element"
        yield Placement.of(model, [node.node for node in step], "cpu", how, why, body=path)


class FuseState:
    """What the nodes with state keep."""

    def __init__(self, plan: FusePlan, plan_of: Callable[[TypedModel], BodyPlan]) -> None:
        self.plan = plan
        self.host = HostState(plan.model, plan_of)

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
        plan, turn = self.plan, self.plan.turn
        turn.begin(self.host, inputs, out, symbols)
        values = dict(zip(plan.model.inputs, inputs, strict=True))
        with turn.going() as budget:
            held = Held(budget.room, owners_of(inputs))
            for step, part in zip(plan.steps, plan.parts, strict=True):
                outputs = self._compute(step, [values[outlet] for outlet in step[0].inputs])
                turn.check_after(step[-1], self.host.session.symbols)
                given = dict(zip(plan.model.nodes[step[-1].node].outlets(), outputs, strict=True))
                if observe is not None:
                    given.update(observe(part, given) or {})
                values.update(given)
                for array in given.values():
                    held.take(array)
        outputs = [values[outlet] for outlet in plan.model.outputs]
        return outputs if out is None else turn.outputs.fill(out, outputs)

    def _compute(self, step: Sequence[HostNode], inputs: list[Array]) -> tuple[Array, ...]:
        if is_element_wise(step[0]):
            check_run_time()
            result = in_blocks(step, inputs[0], self.plan.block)
            if result is not None:
                return (result,)
        outputs = tuple(inputs)
        for node in step:  # where blocks went wrong, this tells in which node
            outputs = node.run(self.host, outputs)
        return outputs

    def reset(self) -> None:
        """The nodes keep nothing from the turns so far."""
        self.host.reset()

    def freeze(self) -> dict[int, Any]:
        """What each node keeps."""
        return self.host.freeze()

    def thaw(self, frozen: dict[int, Any]) -> None:
        """Go back to what each node kept; the snapshot stays as it is."""
        self.host.thaw(frozen, (node for step in self.plan.steps for node in step))


def in_blocks(chain: Sequence[HostNode], x: Array, block: int) -> Array | None:
    """What a chain makes of ``x``, in blocks of so many elements; ``None`` where a node gives something else."""
    flat = np.ascontiguousarray(x).reshape(-1)
    kind = chain[-1].facts[0].datum_type.storage.numpy
    check_room(flat.size * kind.itemsize)
    result = np.empty(flat.shape, kind)
    for start in range(0, flat.size, block):
        part: Any = flat[start : start + block]
        place = result[start : start + block]
        try:
            for node in chain:
                assert node.meaning is not None  # `is_element_wise` asks for it
                part = node.meaning(node.op, part)
        except Exception:
            return None
        if not isinstance(part, np.ndarray) or part.dtype != place.dtype or part.shape != place.shape:
            return None
        place[...] = part
    return result.reshape(x.shape)
