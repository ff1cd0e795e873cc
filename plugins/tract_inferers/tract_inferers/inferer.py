"""What every inferer is: a policy that runs the rows of a batch, whatever it is made of."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from tract_inferers.slots import Slots

if TYPE_CHECKING:
    from tract_inferers.batcher import Batched
    from tract_inferers.noise.epsilon import EpsilonInjector
    from tract_inferers.noise.generators import NoiseGenerator
    from tract_inferers.responses import Response, Responses, State
    from tract_inferers.scratch import ScratchPadView
    from tract_inferers.snapshot import AgentSnapshot


class Inferer(Protocol):
    """A policy. Many threads may use one.

    *Raw* inputs and outputs are those of the model; the others are those that are left when what stands around the
    model, as noise and memory, has taken care of its own. Shapes are those for one agent. Who derives from this class
    gets the methods that have a body.
    """

    def select_batch_size(self, max_count: int) -> int:
        """How many of ``max_count`` rows, at least 1, the next call of `infer_raw` should have."""
        ...

    def infer_raw(self, pad: ScratchPadView) -> None:
        """Run the rows of ``pad``, as many as `select_batch_size` said, and write what comes out to its outputs.

        When this raises, the agents remember what they did before.
        """
        ...

    def raw_input_shapes(self) -> Slots:
        """The inputs of the model, in order."""
        ...

    def raw_output_shapes(self) -> Slots:
        """The outputs of the model, in order."""
        ...

    def input_shapes(self) -> Slots:
        """The inputs that a caller gives, in the order of the model."""
        return self.raw_input_shapes()

    def output_shapes(self) -> Slots:
        """The outputs that a caller gets, in the order of the model."""
        return self.raw_output_shapes()

    def begin_agent(self, id: int) -> None:  # noqa: A002 - the name in the interface that this follows
        """An agent comes: from now on it is remembered, beginning anew where it was known."""

    def end_agent(self, id: int) -> None:  # noqa: A002 - as in `begin_agent`
        """An agent goes, and what is remembered of it; one that is not known changes nothing."""


@runtime_checkable
class Remembering(Protocol):
    """An inferer that knows something of each agent, as a memory or the number of its steps."""

    def remember(self, ids: Iterable[int]) -> Callable[[], None]:
        """A function that brings these agents back to where they are now."""
        ...

    def snapshot(self, ids: Iterable[int] | None = None) -> AgentSnapshot:
        """What is known of these agents, or of all. Raises InputError for one that is not known."""
        ...

    def restore(self, snapshot: AgentSnapshot) -> None:
        """Make the agents of a snapshot what they were. Raises InputError where it does not fit, changing nothing."""
        ...


class InfererExt(Inferer, Protocol):
    """What can be done with any inferer. Those of this package derive from it, and others may."""

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
        from tract_inferers.batcher import Batched

        return Batched.wrap(self)

    def infer_many(self, ids: Any, observations: Mapping[str, Any], *, refuse_nan: bool = False) -> Responses:
        """Run whole arrays: an array by the name of each input, with the agents along axis 0.

        ``ids``: the agent of each row, integers from 0 to 2**64 - 1, each once. The arrays have the shape ``(agents,
        *shape)`` and the element type of the input; they are read in place. ``refuse_nan``: whether not-a-number in
        them is refused. Raises InputError before anything runs, and RunError when the model fails; agents remember what
        they did before then.
        """
        from tract_inferers.batcher import infer_many

        return infer_many(self, ids, observations, refuse_nan=refuse_nan)

    def infer_batch(self, batch: Mapping[int, State]) -> Responses:
        """Run one observation per agent, by agent. Raises as `infer_many` does."""
        from tract_inferers.batcher import infer_batch

        return infer_batch(self, batch)

    def infer_single(self, input: State, *, agent: int = 0) -> Response:  # noqa: A002 - as in `begin_agent`
        """Run one observation, of the agent 0 where no other is named. Raises as `infer_many` does."""
        from tract_inferers.batcher import infer_batch

        return infer_batch(self, {agent: input})[agent]

    def infer(self, observations: Mapping[int, State]) -> Responses:
        """The old name of `infer_batch`."""
        warnings.warn("infer is deprecated: call infer_batch", DeprecationWarning, stacklevel=2)
        return self.infer_batch(observations)
