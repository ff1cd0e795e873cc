"""A plan for each of the sizes that are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from tract_core.api.runtime import Runtime
from tract_core.errors import InputError
from tract_inferers.inferers.planned import ROWS_HINT, Planned, checked, checked_sizes, planned, runtime_of
from tract_inferers.models.policy import Policy
from tract_inferers.models.symbolic import AnyModel, policy_of
from tract_inferers.scratch import ScratchPadView


class FixedBatchInferer(Planned):
    """A policy with a plan for each of some numbers of agents, and for one: others take several calls.

    With the sizes 1, 2 and 4, seven agents take a call of four, one of two, and one of one. ``sizes``: those that there
    are plans for, the largest first.
    """

    def __init__(self, policy: Policy, sizes: Iterable[int], runtime: str | Runtime = "default") -> None:
        """Raises InputError for a size that is none."""
        policy = checked(policy, Policy)
        super().__init__(policy.inputs, policy.outputs)
        self.sizes = tuple(sorted({1, *checked_sizes(sizes)}, reverse=True))
        found = runtime_of(runtime)
        self._runs = {size: planned(policy.for_rows(size), found).run for size in self.sizes}

    @classmethod
    def from_model(cls, model: AnyModel, sizes: Iterable[int], *, runtime: str | Runtime = "default") -> Self:
        """For a model, which stays as it is. Raises Unsupported for one that cannot be a policy for many agents.

        ``runtime``: what runs it, by name or as a `Runtime`. Raises InputError for a size that is no integer from 1.
        """
        return cls(policy_of(model), sizes, runtime)

    from_typed = from_model
    """The same, by the name for models whose types are known."""

    def select_batch_size(self, max_count: int) -> int:
        """The largest size that is not larger."""
        return next((size for size in self.sizes if size <= max_count), 1)

    def infer_raw(self, pad: ScratchPadView) -> None:
        """Run the rows of ``pad``. Raises InputError where there is no plan for so many, RunError when it fails."""
        run = self._runs.get(len(pad.ids))
        if run is None:
            sizes = ", ".join(map(str, self.sizes))
            raise InputError(f"there is no plan for {len(pad.ids)} rows; sizes: {sizes}", hint=ROWS_HINT)
        run(pad.inputs, out=pad.outputs)
