"""One plan for one agent."""

from __future__ import annotations

from typing import Self

from tract_core.api.runtime import Runtime
from tract_core.errors import InputError
from tract_inferers.inferers.planned import ROWS_HINT, Planned, checked, planned, runtime_of
from tract_inferers.models.single import Single, single_of
from tract_inferers.models.symbolic import AnyModel
from tract_inferers.scratch import ScratchPadView


class BasicInferer(Planned):
    """A policy that runs its agents one by one. It takes any model for one agent."""

    def __init__(self, single: Single, runtime: str | Runtime = "default") -> None:
        single = checked(single, Single)
        super().__init__(single.inputs, single.outputs)
        self._run = planned(single.typed, runtime_of(runtime)).run
        slots, shapes = (*single.inputs, *single.outputs), (*single.input_shapes, *single.output_shapes)
        in_front = all(shape == (1, *slot.shape) for slot, shape in zip(slots, shapes, strict=True))
        self._shapes = None if in_front else (single.input_shapes, single.output_shapes)

    @classmethod
    def from_model(cls, model: AnyModel, *, runtime: str | Runtime = "default") -> Self:
        """For a model, which stays as it is. Raises Unsupported for one whose inputs have no axis of agents.

        That is an axis with a symbolic size, or of size 1. ``runtime``: what runs it, by name or as a `Runtime`.
        """
        return cls(single_of(model), runtime)

    from_typed = from_model
    """The same, by the name for models whose types are known."""

    def select_batch_size(self, max_count: int) -> int:
        """One."""
        return 1

    def infer_raw(self, pad: ScratchPadView) -> None:
        """Run the row of ``pad``. Raises InputError unless there is one, RunError when the model fails."""
        if len(pad.ids) != 1:
            raise InputError(f"BasicInferer takes one row at a time, got {len(pad.ids)}", hint=ROWS_HINT)
        if self._shapes is None:
            self._run(pad.inputs, out=pad.outputs)
            return
        inputs, outputs = self._shapes
        given = [array.reshape(shape) for array, shape in zip(pad.inputs, inputs, strict=True)]
        self._run(given, out=[array.reshape(shape) for array, shape in zip(pad.outputs, outputs, strict=True)])
