"""What inferers that are a model have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import numpy as np

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.api.runtime import Runtime, runtime_for_name
from tract_core.errors import InputError
from tract_core.model.typed import TypedModel
from tract_inferers.ext import InfererExt
from tract_inferers.slots import Slot, Slots
from tract_inferers.stateful import StatefulInferer
from tract_inferers.wrapper import InfererWrapper

ROWS_HINT: Final = "ask select_batch_size(), as infer_batch() and Batcher do"


class Planned(InfererExt):
    """An inferer that is a model. ``inputs``, ``outputs``: what it has for one agent."""

    def __init__(self, inputs: tuple[Slot, ...], outputs: tuple[Slot, ...]) -> None:
        self._inputs = inputs
        self._outputs = outputs

    def raw_input_shapes(self) -> Slots:
        """The inputs of the model, in order."""
        return self._inputs

    def raw_output_shapes(self) -> Slots:
        """The outputs of the model, in order."""
        return self._outputs

    def into_stateful(self, wrapper_stack: InfererWrapper) -> StatefulInferer:
        """The policy, with a stack around it that takes care of noise, memory, or whatever else."""
        return StatefulInferer(wrapper_stack, self)


MadeT = TypeVar("MadeT")


def checked(made: object, kind: type[MadeT]) -> MadeT:
    """What `from_model` hands to an inferer. Raises InputError for anything else, as a model."""
    if isinstance(made, kind):
        return made
    raise InputError(f"wanted a {kind.__name__}, got {type(made).__name__}", hint="from_model(model) takes a model")


def runtime_of(runtime: str | Runtime) -> Runtime:
    """A runtime, or the one of that name. Raises InputError for anything else, PluginError for an unknown name."""
    if isinstance(runtime, Runtime):
        return runtime
    if isinstance(runtime, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        return runtime_for_name(runtime)
    raise InputError(f"a runtime goes by its name, or is a Runtime; got {type(runtime).__name__}")


def checked_sizes(sizes: Iterable[Any]) -> list[int]:
    """Numbers of agents. Raises InputError for what is no integer from 1."""
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"sizes are a list of integers, got {sizes!r:.60}")
    found = list(sizes)
    for size in found:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
            raise InputError(f"{size!r:.60} is no number of agents, wanted an integer from 1")
    return [int(size) for size in found]


def planned(model: TypedModel, runtime: Runtime) -> Runnable:
    """A plan for a model, which stays as it is."""
    return runtime.prepare(Model(model.clone()))
