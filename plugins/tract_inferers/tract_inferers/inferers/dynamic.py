"""One plan for batches of any size."""

from __future__ import annotations

from typing import Self

from tract_core.api.runtime import Runtime
from tract_inferers.inferers.planned import Planned, checked, planned, runtime_of
from tract_inferers.models.policy import Policy
from tract_inferers.models.symbolic import AnyModel, policy_of
from tract_inferers.scratch import ScratchPadView


class DynamicInferer(Planned):
    """A policy with one plan, which takes as many agents as there are."""

    def __init__(self, policy: Policy, runtime: str | Runtime = "default") -> None:
        policy = checked(policy, Policy)
        super().__init__(policy.inputs, policy.outputs)
        self._run = planned(policy.typed, runtime_of(runtime)).run

    @classmethod
    def from_model(cls, model: AnyModel, *, runtime: str | Runtime = "default") -> Self:
        """For a model, which stays as it is. Raises Unsupported for one that cannot be a policy for many agents.

        ``runtime``: what runs it, by name or as a `Runtime`.
        """
        return cls(policy_of(model), runtime)

    from_typed = from_model
    """The same, by the name for models whose types are known."""

    def select_batch_size(self, max_count: int) -> int:
        """All of them."""
        return max_count

    def infer_raw(self, pad: ScratchPadView) -> None:
        """Run the rows of ``pad``. Raises RunError when the model fails."""
        self._run(pad.inputs, out=pad.outputs)
