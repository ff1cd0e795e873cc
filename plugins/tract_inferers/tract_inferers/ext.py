"""What can be done with any inferer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

from tract_inferers.batcher import Batched, infer_batch, infer_many, infer_single
from tract_inferers.inferer import Inferer
from tract_inferers.observations import checked_ids
from tract_inferers.responses import Response, Responses, State
from tract_inferers.slots import as_slots, listed

if TYPE_CHECKING:
    from tract_inferers.noise.epsilon import EpsilonInjector
    from tract_inferers.noise.generators import NoiseGenerator


class InfererExt(Inferer, Protocol):
    """What can be done with any inferer. Those of this package derive from it, and others may."""

    def __repr__(self) -> str:
        inputs, outputs = as_slots(self.input_shapes()), as_slots(self.output_shapes())
        return f"{type(self).__name__}({listed(inputs)} -> {listed(outputs)})"

    def with_default_epsilon(self, key: str) -> EpsilonInjector:
        """The policy, with standard normal noise for its input ``key``. Raises InputError where it has none."""
        from tract_inferers.noise.epsilon import EpsilonInjector

        return EpsilonInjector.wrap(self, key)

    def with_epsilon(self, generator: NoiseGenerator, key: str) -> EpsilonInjector:
        """The policy, with noise from ``generator`` for its input ``key``. Raises InputError where it has none."""
        from tract_inferers.noise.epsilon import EpsilonInjector

        return EpsilonInjector.with_generator(self, generator, key)

    def into_batched(self) -> Batched[Self]:
        """The policy, with observations that are pushed one by one, and run together."""
        return Batched(self)

    def begin_agents(self, ids: Iterable[int]) -> None:
        """Several agents come, as `begin_agent` says. Raises InputError, before any does, for what is no agent."""
        for agent in checked_ids(ids):
            self.begin_agent(agent)

    def end_agents(self, ids: Iterable[int]) -> None:
        """Several agents go, as `end_agent` says."""
        for agent in checked_ids(ids):
            self.end_agent(agent)

    def infer_many(self, ids: Any, observations: Mapping[str, Any], *, refuse_nan: bool = False) -> Responses:
        """Run whole arrays: an array by the name of each input, with the agents along axis 0.

        ``ids``: the agent of each row, integers from 0 to 2**64 - 1, each once. The arrays have the shape ``(agents,
        *shape)`` and the element type of the input; they are read in place. ``refuse_nan``: whether not-a-number in
        them is refused. Raises InputError before anything runs, and RunError when the model fails; agents remember what
        they did before then.
        """
        return infer_many(self, ids, observations, refuse_nan=refuse_nan)

    def infer_batch(self, batch: Mapping[int, State], *, refuse_nan: bool = False) -> Responses:
        """Run one observation per agent, by agent. Raises as `infer_many` does."""
        return infer_batch(self, batch, refuse_nan=refuse_nan)

    def infer_single(self, input: State, *, agent: int = 0, refuse_nan: bool = False) -> Response:  # noqa: A002 - as in `begin_agent`
        """Run one observation, of the agent 0 where no other is named. Raises as `infer_many` does."""
        return infer_single(self, agent, input, refuse_nan=refuse_nan)

    def infer(self, observations: Mapping[int, State]) -> Responses:
        """The old name of `infer_batch`."""
        warnings.warn("infer is deprecated: call infer_batch", DeprecationWarning, stacklevel=2)
        return self.infer_batch(observations)
