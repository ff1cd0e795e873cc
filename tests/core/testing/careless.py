"""A runtime for each point of the contract that it misses, and one that misses them all.

Each does what `tract_core.runtime.protocol` asks, but for its lapses. `registry` offers them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tract_core.data import Constant
from tract_core.dims import SymbolScope
from tract_core.errors import RunError, TractError
from tract_core.limits import DEFAULT_LIMITS
from tract_core.model.const import Const
from tract_core.model.knowledge import Conditions
from tract_core.model.typed import TypedModel
from tract_core.plugins import Registry, hookimpl
from tract_core.plugins.keys import Array
from tract_core.runtime.explain import Explanation, by_numpy
from tract_core.runtime.held import Held, owners_of
from tract_core.runtime.host import Bodies, HostNode, HostState, host_nodes
from tract_core.runtime.observed import ObservedState
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedSimplePlan, TypedSimpleState, refuse_missing
from tract_core.runtime.protocol import Observer, Timing
from tract_core.runtime.turn import Turn

LAPSES = (
    "assertions",
    "conditions",
    "middle",
    "max_tensor_bytes",
    "max_run_bytes",
    "deadline",
    "bodies",
    "constants",
    "reset",
    "out",
    "aliasing",
    "repeats",
    "interleaved",
    "frozen",
    "options",
    "errors",
    "explain",
    "observe",
    "turns",
    "symbols",
    "times",
)

KEPT_HERE: dict[int, Any] = {}
"""Snapshots, which never leave this process."""


@dataclass(frozen=True)
class Careful:
    """Misses nothing."""

    name: ClassVar[str] = "careful"
    lapses: ClassVar[frozenset[str]] = frozenset()

    def why_unusable(self) -> str | None:
        return None

    def prepare(self, model: TypedModel) -> Any:
        refuse_missing(model)
        plan = Plan if "aliasing" in self.lapses else LendingPlan
        return plan(self.name, self.lapses, model)


class Forgetful(Careful):
    """Has an option that is no field, so that nobody can list it, and it gets lost."""

    def __init__(self, threads: int = 1) -> None:
        self.__dict__["threads"] = threads


def _as_it_is_seen(model: TypedModel, lapses: frozenset[str]) -> TypedModel:
    """The model without what a careless runtime does not look at."""
    seen = model.clone()
    if "assertions" in lapses:
        seen.symbols = SymbolScope()
    if "conditions" in lapses:
        seen.conditions = Conditions()
    if "max_tensor_bytes" in lapses:
        seen.limits = replace(seen.limits, max_tensor_bytes=DEFAULT_LIMITS.max_tensor_bytes)
    if "deadline" in lapses:
        seen.limits = replace(seen.limits, run_deadline_s=DEFAULT_LIMITS.run_deadline_s)
    return seen


class BodyWithoutSizes(TypedSimplePlan):
    """A body that is not told the sizes of the model around it."""

    def spawn(self) -> Any:
        return BodyStateWithoutSizes(self)


class BodyStateWithoutSizes(TypedSimpleState):
    def run(self, inputs: Sequence[Array], *args: Any, **options: Any) -> list[Array]:
        return super().run(inputs)


class Plan:
    """Runs node by node, and keeps every tensor to the end."""

    def __init__(self, runtime: str, lapses: frozenset[str], model: TypedModel) -> None:
        self.runtime = runtime
        self.lapses = lapses
        self.model = _as_it_is_seen(model, lapses)
        self.nodes = host_nodes(self.model)
        self.turn = Turn(self.model, self.nodes)
        self.bodies = Bodies(BodyWithoutSizes if "bodies" in lapses else TypedSimplePlan)
        self.shared = HostState(self.model, self.bodies)
        self.first: list[Array] = []

    def repeat(self, inputs: Any, out: Any = None) -> list[Array] | None:
        """Does what it is asked to, or, where it is careless, what it was asked to the first time."""
        if "repeats" not in self.lapses or out is not None:
            return None
        self.first = self.first or self.spawn().run(inputs)
        return self.first

    def spawn(self) -> Any:
        return State(self, self.shared if "interleaved" in self.lapses else HostState(self.model, self.bodies))

    def spawn_observed(self, observe: Observer) -> ObservedState:
        return ObservedState(self.spawn(), observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        self.spawn().run(inputs)
        late = 1 if "times" in self.lapses else 0
        return [Timing(Part((node.node + late,)), float(place), 1.0) for place, node in enumerate(self.nodes)]

    def explain(self) -> Explanation:
        placed = tuple(by_numpy(self.model, "so"))
        return Explanation(self.runtime, tuple(p for p in placed if "explain" not in self.lapses or not p.part.body))


class LendingPlan(Plan):
    """Says that its outputs may be inputs."""

    @property
    def lent(self) -> Sequence[int]:
        return range(len(self.model.outputs))


class State:
    """Each lapse in its place."""

    def __init__(self, plan: Plan, host: HostState) -> None:
        self.plan = plan
        self.host = host
        self.lapses = plan.lapses

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
        observe: Observer | None = None,
    ) -> list[Array]:
        plan, turn = self.plan, self.plan.turn
        if "out" in self.lapses:
            out = None
        if "turns" in self.lapses and observe is not None:
            self.host.reset()
        turn.begin(self.host, inputs, out, symbols if "symbols" not in self.lapses else None)
        values = dict(zip(plan.model.inputs, inputs, strict=True))
        with turn.going() as budget:
            held = Held(budget.room, owners_of(inputs))
            for node in plan.nodes:
                outputs = self._compute(node, [values[outlet] for outlet in node.inputs])
                if "middle" not in self.lapses:
                    turn.check_after(node, self.host.session.symbols)
                given = dict(zip(plan.model.nodes[node.node].outlets(), outputs, strict=True))
                exchanged = observe(Part((node.node,)), given) if observe is not None else None
                values.update(given)
                values.update((exchanged or {}) if "observe" not in self.lapses else {})
                if "max_run_bytes" not in self.lapses:
                    for array in given.values():
                        held.take(array)
        outputs = [values[outlet] for outlet in plan.model.outputs]
        return outputs if out is None else turn.outputs.fill(out, outputs)

    def _compute(self, node: HostNode, inputs: list[Array]) -> tuple[Array, ...]:
        if "constants" in self.lapses and isinstance(node.op, Const) and isinstance(node.op.value, Constant):
            return (_by_its_pointer(node.op.value.array),)
        try:
            return node.run(self.host, inputs)
        except TractError as error:
            if "errors" in self.lapses:
                raise RunError(error.problem) from None
            raise

    def reset(self) -> None:
        if "reset" not in self.lapses:
            self.host.reset()

    def freeze(self) -> Any:
        frozen = self.host.freeze()
        if "frozen" not in self.lapses:
            return frozen
        KEPT_HERE[len(KEPT_HERE)] = frozen
        return len(KEPT_HERE) - 1

    def thaw(self, frozen: Any) -> None:
        self.host.thaw(KEPT_HERE[frozen] if "frozen" in self.lapses else frozen, self.plan.nodes)


def _by_its_pointer(array: Array) -> Array:
    """What native code reads that takes an array for contiguous and aligned: from the lowest address on, in order.

    Zeros stand for what lies outside of the array's memory, which this does not read.
    """
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = bytes(low % array.itemsize) + ctypes.string_at(low, high - low) + bytes(array.nbytes)
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)


def careless(name: str, *lapses: str) -> type[Careful]:
    """A class of runtimes with these lapses."""
    base = Forgetful if "options" in lapses else Careful
    return type(name, (base,), {"name": name, "lapses": frozenset(lapses)})


RUNTIMES = {
    "careful": Careful,
    "careless": careless("careless", *LAPSES),
    **{f"careless-{lapse}": careless(f"careless-{lapse}", lapse) for lapse in LAPSES},
}
globals().update({name.replace("-", "_"): kind for name, kind in RUNTIMES.items()})


class Plugin:
    """Offers all of them."""

    @hookimpl
    def tract_api_version(self) -> str:
        return "1.0"

    @hookimpl
    def tract_runtimes(self) -> Mapping[str, str]:
        return {name: f"{__name__}:{name.replace('-', '_')}" for name in RUNTIMES}


def registry() -> Registry:
    """The core, and these runtimes."""
    return Registry({"careless": Plugin()}, discover=False)
