"""What a runtime is: the shapes that a plugin implements so that its models run behind `tract_core.Runnable`.

This is the whole contract, and the conformance kit (`tract_core.testing.conformance`) checks every point of it. What a
`Runtime`, a `Plan` and a `PlanState` must do is said where they are; most of it comes from `tract_core.runtime.turn`,
`tract_core.runtime.outputs` and `tract_core.runtime.host`, which every runtime may use. What some plans can do besides
are protocols of their own, which are asked for with ``isinstance``: `LendingPlan`, `Repeating`, `OwningPlan`,
`ObservablePlan`, `TimedPlan`, `MeasuringPlan`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.runtime.explain import Explanation
    from tract_core.runtime.parts import Part
    from tract_core.runtime.work import Ceilings


class PlanState(Protocol):
    """What one execution keeps between turns. Used by one thread at a time."""

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
    ) -> list[Array]:
        """One turn: arrays in the order of the model's inputs, arrays in the order of its outputs.

        The inputs are read-only, contiguous, aligned, in native byte order. Before anything is computed, the runtime
        checks that they fit the facts of the model, that the sizes are such that every assertion of the model's scope
        holds (`TypedModel.symbols`) and every condition of its operators (`TypedModel.conditions`), and that no tensor
        takes more than ``TypedModel.limits.max_tensor_bytes``; what only the middle of the run tells is checked there.
        The time that ``limits.run_deadline_s`` allows is looked at between nodes, and as often as one that takes long
        lets it. `Turn` does all of that. What the run holds at the same time, with all that its nodes need besides, is
        no more than ``limits.max_run_bytes``: `tract_core.runtime.held` counts arrays. Operators that run bodies are
        told the sizes around them (`Session.symbols`).

        The outputs are not changed by later turns, and share no memory with the inputs, unless the plan is a
        `LendingPlan`. Nothing that the caller does to his arrays after a turn reaches a later turn.

        ``out``: arrays of the caller to fill with the outputs, which are then what is returned. They are writable,
        contiguous, aligned, in native byte order, and share no memory with each other or with the inputs; their number,
        types and shapes are for the runtime to check, before it writes to them (`Turn.outputs`). What they hold after
        an error is undefined.

        ``symbols``: the values of symbols that no input tells, as the length of a signal that comes in pieces, or of
        the model around a body. Operators with state find them in `Session.symbols`. Not every turn needs to have them.

        Raises InputError when the arrays do not fit, RunError when a node fails or asks for too much; errors name the
        node, and those in whose bodies it is. After an error the state can be used, or reset.
        """
        ...

    def reset(self) -> None:
        """Back to a fresh state, as `Plan.spawn` gives it."""
        ...

    def freeze(self) -> Any:
        """A snapshot that later turns do not change. It can be pickled, and be used in another process."""
        ...

    def thaw(self, frozen: Any) -> None:
        """Go back to a snapshot of a state of the same model on the same runtime, which stays as it is."""
        ...


class Plan(Protocol):
    """A model made ready to run. Immutable: many threads may spawn states from one plan."""

    def spawn(self) -> PlanState:
        """A fresh state, which knows nothing of the others."""
        ...

    def explain(self) -> Explanation:
        """Where each node runs, how, and why, those in bodies too; nodes that are fused are one placement."""
        ...


class Runtime(Protocol):
    """One way to execute models: a frozen dataclass whose fields are its options, each with a default.

    Offered by name through the hook ``tract_runtimes``. ``name``: that name. What is pickled of a runtime is its name
    and its options, so that there is nothing else to it.
    """

    name: ClassVar[str]

    def why_unusable(self) -> str | None:
        """``None`` when it works on this machine, else one sentence, as ``"driver 470 is older than 525"``."""
        ...

    def prepare(self, model: TypedModel) -> Plan:
        """Make a model ready to run. ``model`` is not changed: what the runtime rewrites, it copies first.

        The arrays of constants may be unaligned, and may lie in memory in any order, with strides of 0 among others.
        Raises Unsupported, naming all operators concerned, when it cannot run the model.
        """
        ...


@runtime_checkable
class KeepingRuntime(Protocol):
    """Optional ability of a runtime: its plans can be kept, and run in another process without being made again."""

    def told(self) -> str:
        """What its plans depend on besides the model and the installed distributions: its options, and the machine."""
        ...

    def kept(self, plan: Any) -> object | None:
        """What is kept of a plan: an object that can be pickled; ``None`` for a plan that cannot be kept.

        Its arrays are mapped where it is found. What only few turns need is held by a
        `tract_core.later.Later`, which is unpickled when it is asked for.
        """
        ...

    def restored(self, kept: Any, model: Callable[[], TypedModel]) -> Plan | None:
        """The plan that this was kept of; ``None`` where something is gone that it needs.

        ``model``: gives the model that the plan was made for, when it is asked.
        """
        ...


@runtime_checkable
class LendingPlan(Protocol):
    """Optional ability of a plan: it gives back what it was given, where an output is an input or a part of one.

    Who runs such a plan copies what shares memory with the inputs.
    """

    @property
    def lent(self) -> Sequence[int]:
        """The outputs, by their numbers, that may be so."""
        ...


@runtime_checkable
class Repeating(Protocol):
    """Optional ability of a plan, and of a state: it sees at a glance that a turn is like one before."""

    @property
    def repeat(self) -> Callable[..., list[Array] | None]:
        """Takes the inputs of a caller, as he gave them, and does one turn, on a fresh state where a plan is asked.

        A second argument, where there is one, is what he gave as arrays to fill, which are then what is returned.
        Returns the outputs as `PlanState.run` does, each an array of NumPy. Where it is not sure at once that the turn
        is right, returns ``None``, and nothing was done: then arrays are made of what was given, and `PlanState.run`
        is called, which refuses what is wrong. What it returns may be another function after each turn.
        """
        ...


@runtime_checkable
class OwningPlan(Protocol):
    """Optional ability of a plan: it runs a model of its own, which it made of the one that it was given.

    The nodes of its placements, observations and timings are those of ``model``. Of a plan without this ability, they
    are those of the model that it was given.
    """

    @property
    def model(self) -> TypedModel:
        """The model that really runs."""
        ...


def running_model(plan: Plan, given: TypedModel) -> TypedModel:
    """The model that a plan really runs, which was made of the one ``given``."""
    from tract_core.model.typed import TypedModel

    owned: object = plan.model if isinstance(plan, OwningPlan) else None
    return owned if isinstance(owned, TypedModel) else given  # a plan may call something else its model


Observer: TypeAlias = "Callable[[Part, Mapping[OutletId, Array]], Mapping[OutletId, Array] | None]"
"""Called after every part with the tensors that it gives; those that it returns, if any, take their places."""


@runtime_checkable
class ObservablePlan(Protocol):
    """Optional ability of a plan: it shows what every node computes; of nodes that are fused, what leaves the group."""

    def spawn_observed(self, observe: Observer) -> PlanState:
        """A fresh state, in whose turns ``observe`` sees every part of the model, those of bodies left out.

        The parts are those that run without it: what fuses nodes shows groups. ``observe`` may exchange tensors.
        """
        ...


@frozen
class Timing:
    """How long a part took in one turn, or in one iteration of the body that it is in.

    ``start``: seconds since the turn began; ``seconds``: how long it took, with the bodies that it ran.
    """

    part: Part
    start: float
    seconds: float


@runtime_checkable
class TimedPlan(Protocol):
    """Optional ability of a plan: it can tell how long each node, or group of nodes, takes."""

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and what each part of the model took in it, and those of bodies, in any order."""
        ...


@runtime_checkable
class MeasuringPlan(Protocol):
    """Optional ability of a plan: it can measure what the machine can do at most, with as many threads as it has."""

    def ceilings(self) -> Ceilings:
        """Measured now, in about a second."""
        ...
