"""How far a state has come in a signal that it takes in pulses, and what that means for the end of the signal."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.errors import InputError, Unsupported
from tract_core.runtime.streams import Streams, pulse_of

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.runtime.protocol import PlanState


@dataclass(slots=True)
class Progress:
    """How many positions of the first input that streams have ``come``.

    ``pulse``: how many come in a turn; ``None`` where the input says so. ``slot``, ``name``, ``axis``: of that input.
    """

    slot: int
    name: str
    axis: int
    pulse: int | None
    come: int = 0

    @staticmethod
    def of(model: TypedModel, come: int = 0) -> Progress | None:
        """``None`` for a model that takes no stream, and for one whose properties do not fit it."""
        if "pulse.input_axes" not in model.properties:
            return None
        try:
            streams = Streams.of(model)
        except InputError:
            return None
        for slot, end in enumerate(streams.inputs if streams is not None else ()):
            if end is not None:
                size, any_multiple = pulse_of(model, slot, end)
                name = model.outlet_name(model.inputs[slot])
                return Progress(slot, name, end.axis, None if any_multiple else size, come)
        return None

    def turn(self, inputs: Sequence[Any] | Mapping[str, Any]) -> None:
        """A turn was done on these inputs."""
        if self.pulse is not None:
            self.come += self.pulse
            return
        value: Any = inputs[self.name] if isinstance(inputs, Mapping) else inputs[self.slot]
        shape = getattr(value, "shape", None)
        self.come += int((np.shape(value) if shape is None or callable(shape) else shape)[self.axis])


def check_begins(progress: Progress | None, *, told: Mapping[str, int] | None) -> None:
    """Raises InputError for a state that a signal has gone through, or that is in the middle of one."""
    if told is not None:
        raise InputError("a signal has gone through the state", hint="reset() begins a new one")
    if progress is not None and progress.come:
        raise InputError(
            f"the state is in the middle of a signal, of which {progress.come} positions have come",
            hint="reset() begins a new one; run and end_of_stream go on with this one",
        )


def check_can_end(
    progress: Progress | None, total: int, *, told: Mapping[str, int] | None, now: Mapping[str, int]
) -> None:
    """Raises InputError where a signal of ``total`` positions has ended already, or another length was told before."""
    if told is not None and told != now:
        before = ", ".join(f"{symbol}={size}" for symbol, size in told.items())
        after = ", ".join(f"{symbol}={size}" for symbol, size in now.items())
        hint = "reset() begins a new signal"
        raise InputError(f"the length of the signal was told already, as {before}, and now as {after}", hint=hint)
    if told is None and progress is not None and progress.come > total:
        raise InputError(
            f"a signal of {total} positions has ended already, as {progress.come} have come",
            hint="call end_of_stream before the pulse in which the signal ends",
        )


def check_takes_symbols(state: PlanState, runtime: str) -> None:
    """Raises Unsupported where a state cannot be told the length of a signal."""
    try:
        parameters = inspect.signature(state.run).parameters.values()
    except (TypeError, ValueError):
        return  # it does not say what it takes
    if not any(one.name == "symbols" or one.kind is one.VAR_KEYWORD for one in parameters):
        raise Unsupported(
            f"runtime {runtime!r} cannot be told where a signal ends: run() of its states takes no 'symbols'",
            hint="its authors find the contract in tract_core.runtime.protocol; -r reference does",
        )
