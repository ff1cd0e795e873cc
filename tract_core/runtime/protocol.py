"""What a runtime is: the shapes that a plugin implements so that its models run behind `tract_core.Runnable`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.explain import Explanation


class PlanState(Protocol):
    """What one execution keeps between turns. Used by one thread at a time."""

    def run(self, inputs: Sequence[Array], out: Sequence[Array] | None = None) -> list[Array]:
        """One turn: arrays in the order of the model's inputs, arrays in the order of its outputs.

        The inputs are read-only, contiguous, in native byte order; whether they fit the model is for the runtime to
        check (`tract_core.runtime.binding.bind_inputs` does), and what `TypedModel.conditions` wants of the sizes
        (`tract_core.runtime.conditions`). The outputs are not changed by later turns, and share no memory with the
        inputs, unless the plan is a `LendingPlan`. Raises InputError when the inputs do not fit, RunError, with the
        node's name, when a node fails.

        ``out``: arrays of the caller to fill with the outputs, which are then what is returned. They are writable,
        contiguous, in native byte order, and share no memory with each other or with the inputs; whether their number,
        types and shapes are right is for the runtime to check (`tract_core.runtime.outputs` does), before it writes to
        them. What they hold after an error is undefined.
        """
        ...

    def reset(self) -> None:
        """Back to a fresh state, as `Plan.spawn` gives it."""
        ...

    def freeze(self) -> Any:
        """A snapshot that can be pickled and that later turns do not change."""
        ...

    def thaw(self, frozen: Any) -> None:
        """Go back to a snapshot of a state of the same model on the same runtime, which stays as it is."""
        ...


class Plan(Protocol):
    """A model made ready to run. Immutable: many threads may spawn states from one plan."""

    def spawn(self) -> PlanState:
        """A fresh state."""
        ...

    def explain(self) -> Explanation:
        """Where each node runs, how, and why."""
        ...


class Runtime(Protocol):
    """One way to execute models: a frozen dataclass whose fields are its options, each with a default.

    Offered by name through the hook ``tract_runtimes``. ``name``: that name.
    """

    name: ClassVar[str]

    def why_unusable(self) -> str | None:
        """``None`` when it works on this machine, else one sentence, as ``"driver 470 is older than 525"``."""
        ...

    def prepare(self, model: TypedModel) -> Plan:
        """Make a model ready to run. ``model`` is not changed: what the runtime rewrites, it copies first.

        Raises Unsupported, naming all operators concerned, when it cannot run the model.
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


Observer = Callable[[int, "tuple[Array, ...]"], "tuple[Array, ...] | None"]
"""Called after every node with its id and its outputs; what it returns, if anything, takes their place."""


@runtime_checkable
class ObservablePlan(Protocol):
    """Optional ability of a plan: it shows what every node computes."""

    def observed_run(self, inputs: Sequence[Array], observe: Observer) -> list[Array]:
        """One turn on a fresh state, in which ``observe`` sees the outputs of every node, and may exchange them."""
        ...


@dataclass(frozen=True, slots=True)
class NodeTiming:
    """How long one node took in one turn. ``start``: seconds since the turn began; ``seconds``: how long it took."""

    node: int
    name: str
    op: str
    start: float
    seconds: float


@runtime_checkable
class TimedPlan(Protocol):
    """Optional ability of a plan: it can tell how long each node takes."""

    def timed_run(self, inputs: Sequence[Array]) -> list[NodeTiming]:
        """One turn on a fresh state, and what each node of the model took in it, in order of execution."""
        ...
