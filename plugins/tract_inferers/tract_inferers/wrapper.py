"""What stands around a model, as a stack apart from it: each layer does its own, and calls the one below once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from tract_inferers.inferer import Inferer
from tract_inferers.slots import Slots

if TYPE_CHECKING:
    from tract_inferers.scratch import ScratchPadView
    from tract_inferers.snapshot import AgentSnapshot
    from tract_inferers.stateful import StatefulInferer


class InfererWrapper(Protocol):
    """A layer around a model, or several. ``inferer`` is the model in the middle, in every method."""

    def input_shapes(self, inferer: Inferer) -> Slots:
        """The inputs that a caller gives: those of the layer below, without those that this one takes care of."""
        ...

    def output_shapes(self, inferer: Inferer) -> Slots:
        """The outputs that a caller gets: those of the layer below, without those that this one keeps."""
        ...

    def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
        """Run the rows of ``pad``: fill inputs, call the layer below once, take outputs.

        When this raises, agents remember what they did before.
        """
        ...

    def begin_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - the name in the interface that this follows
        """An agent comes."""
        ...

    def end_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - as in `begin_agent`
        """An agent goes."""
        ...

    def remember(self, inferer: Inferer, ids: Iterable[int]) -> Callable[[], None]:
        """A function that brings these agents back to where they are now, in this layer and those below."""
        ...

    def snapshot(self, inferer: Inferer, ids: Iterable[int] | None = None) -> AgentSnapshot:
        """What this layer and those below know of these agents, or of all. Raises InputError for one not known."""
        ...

    def agents(self, inferer: Inferer) -> list[int]:
        """Who has a memory in this layer or, where it keeps none, in those below, in the order in which they came."""
        return []

    def restore(self, inferer: Inferer, snapshot: AgentSnapshot) -> None:
        """Make the agents of a snapshot what they were. Raises InputError where it does not fit, changing nothing."""
        ...


class InfererWrapperExt(InfererWrapper, Protocol):
    """What can be done with any stack."""

    def wrap(self, inferer: Inferer) -> StatefulInferer:
        """The stack around this model."""
        from tract_inferers.stateful import StatefulInferer

        return StatefulInferer(self, inferer)
