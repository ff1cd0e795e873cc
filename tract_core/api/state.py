"""Executions that go on from call to call, and their snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.api.calls import as_arrays, named_inputs
from tract_core.api.containers import given_back
from tract_core.api.interface import TypedInterface
from tract_core.api.runtime import calling
from tract_core.api.tensor import Tensor
from tract_core.data.boxes import tensors_in
from tract_core.errors import InputError
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable
    from tract_core.runtime.protocol import PlanState


class State(TypedInterface):
    """What the nodes of a `Runnable` keep from one call of `run` to the next. Used by one thread at a time."""

    __slots__ = ("_inner", "_runnable")

    def __init__(self, runnable: Runnable, inner: PlanState) -> None:
        """For this package; users call `Runnable.spawn_state`."""
        self._runnable = runnable
        self._inner = inner

    @property
    def typed(self) -> TypedModel:
        """The model, as the core has it. To be read, not changed."""
        return self._runnable.typed

    def run(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Tensor]:
        """The next turn. Inputs and outputs are those of `Runnable.run`.

        An output that is a sequence is a list of tensors, a map a dictionary, an empty optional ``None``.
        """
        arrays = as_arrays(inputs, self.typed)
        facts = [self.typed.outlet_fact(outlet) for outlet in self.typed.outputs]
        with calling(self._runnable.runtime, "run"):
            outputs = self._inner.run(arrays)
            if len(outputs) != len(facts):
                raise ValueError(f"it returned {len(outputs)} outputs, the model has {len(facts)}")
            lent = [one for array in arrays for one in tensors_in(array)]
            apart = partial(_apart, inputs=lent)
            return [given_back(array, fact.datum_type, apart) for array, fact in zip(outputs, facts, strict=True)]

    def __call__(self, *inputs: Any, **named: Any) -> list[Tensor]:
        """`run`, with the first inputs in order and the others by name."""
        return self.run(named_inputs(inputs, named, self.input_names()))

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
        with calling(self._runnable.runtime, "unfreeze"):
            inner = self._runnable.plan.spawn()
            inner.thaw(self._frozen)
        return State(self._runnable, inner)

    def __repr__(self) -> str:
        return f"FrozenState of {self._runnable}"

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenState, (self._runnable, self._frozen)


def _apart(array: Array, inputs: Sequence[Array]) -> Array:
    """``array``, copied where it is part of an input, which its owner may change later."""
    array = np.asarray(array)
    return array.copy() if any(np.may_share_memory(array, one) for one in inputs) else array
