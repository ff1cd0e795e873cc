"""Executions that go on from call to call, and their snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from tract_core.api.calls import Calls, named_inputs
from tract_core.api.interface import TypedInterface
from tract_core.api.runtime import calling
from tract_core.api.tensor import Tensor
from tract_core.errors import InputError
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.protocol import Repeating

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable
    from tract_core.runtime.protocol import PlanState


class State(TypedInterface):
    """What the nodes of a `Runnable` keep from one call of `run` to the next. Used by one thread at a time."""

    __slots__ = ("_calls", "_inner", "_repeats", "_runnable")

    def __init__(self, runnable: Runnable, calls: Calls, inner: PlanState) -> None:
        """For this package; users call `Runnable.spawn_state`."""
        self._runnable = runnable
        self._calls = calls
        self._inner = inner
        self._repeats = isinstance(inner, Repeating)

    @property
    def typed(self) -> TypedModel:
        """The model, as the core has it. To be read, not changed."""
        return self._runnable.typed

    @overload
    def run(self, inputs: Sequence[Any] | Mapping[str, Any], out: None = None) -> list[Tensor]: ...
    @overload
    def run(
        self, inputs: Sequence[Any] | Mapping[str, Any], out: Sequence[Array] | Mapping[str, Array]
    ) -> list[Array]: ...
    def run(self, inputs: Sequence[Any] | Mapping[str, Any], out: Any = None) -> list[Any]:
        """The next turn. Inputs, outputs and ``out`` are those of `Runnable.run`."""
        if self._repeats:
            found = self._calls.repeat(cast("Repeating", self._inner), inputs, out)
            if found is not None:
                return found
        return self._calls.run(self._inner, inputs, out)

    def __call__(self, *inputs: Any, **named: Any) -> list[Tensor]:
        """`run`, with the first inputs in order and the others by name."""
        return self.run(named_inputs(inputs, named, self.input_names()))

    def reset(self) -> None:
        """Forget the turns so far: the state is as `Runnable.spawn_state` gave it."""
        with calling(self._runnable.runtime, "reset"):
            self._inner.reset()

    def freeze(self) -> FrozenState:
        """A snapshot of the state, which later calls do not change. The state itself can go on."""
        with calling(self._runnable.runtime, "freeze"):
            return FrozenState(self._runnable, self._inner.freeze())

    def __repr__(self) -> str:
        return f"State of {self._runnable}"

    def __reduce__(self) -> tuple[object, ...]:
        raise InputError("a State cannot be pickled", hint="pickle what freeze() returns")


class FrozenState:
    """A snapshot of a `State`. Immutable; it can be pickled, and takes its model along.

    Frozen states of one `Runnable` that are pickled together share one copy of the model. A pickle is a program that
    runs when it is opened: open only those of people whom you trust.
    """

    __slots__ = ("_frozen", "_runnable")

    def __init__(self, runnable: Runnable, frozen: Any) -> None:
        """For this package; users call `State.freeze`."""
        self._runnable = runnable
        self._frozen = frozen

    def unfreeze(self) -> State:
        """A new state that goes on from the snapshot. Can be called any number of times."""
        runnable = self._runnable
        with calling(runnable.runtime, "unfreeze"):
            inner = runnable.plan.spawn()
            inner.thaw(self._frozen)
        return State(runnable, Calls(runnable.typed, runnable.plan, runnable.runtime), inner)

    def __repr__(self) -> str:
        return f"FrozenState of {self._runnable}"

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenState, (self._runnable, self._frozen)
