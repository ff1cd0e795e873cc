"""What every inferer is: a policy that runs the rows of a batch, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tract_inferers.slots import Slots

if TYPE_CHECKING:
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
