"""A policy and what stands around it, apart from each other: the policy can be replaced while its agents live on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tract_core.errors import InputError
from tract_inferers.batcher import run_rows
from tract_inferers.compatible import check_compatible, interface_of
from tract_inferers.errors import IncompatibleInferer, names
from tract_inferers.ext import InfererExt
from tract_inferers.inferer import Inferer, Remembering
from tract_inferers.observations import checked_id, checked_ids
from tract_inferers.scratch import ScratchPadView
from tract_inferers.slots import Slots, as_slots
from tract_inferers.snapshot import AgentSnapshot
from tract_inferers.wrapper import InfererWrapper, InfererWrapperExt


class BaseWrapper(InfererWrapperExt):
    """The bottom of a stack: it hands everything on to the policy in the middle."""

    def input_shapes(self, inferer: Inferer) -> Slots:
        """Those of the policy."""
        return inferer.input_shapes()

    def output_shapes(self, inferer: Inferer) -> Slots:
        """Those of the policy."""
        return inferer.output_shapes()

    def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
        """Run the policy: in one call, or in several where it was replaced by one that takes fewer rows meanwhile."""
        run_rows(inferer, pad)

    def begin_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - the name in the interface that this follows
        """The policy is told."""
        inferer.begin_agent(id)

    def end_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - as in `begin_agent`
        """The policy is told."""
        inferer.end_agent(id)

    def remember(self, inferer: Inferer, ids: Iterable[int]) -> Callable[[], None]:
        """What the policy remembers, if it remembers something."""
        return inferer.remember(ids) if isinstance(inferer, Remembering) else _nothing

    def snapshot(self, inferer: Inferer, ids: Iterable[int] | None = None) -> AgentSnapshot:
        """What the policy knows, if it knows something."""
        if isinstance(inferer, Remembering):
            return inferer.snapshot(ids)
        return AgentSnapshot(tuple(() if ids is None else ids), {})

    def agents(self, inferer: Inferer) -> list[int]:
        """Who has a memory in the policy, if it can tell."""
        found: Callable[[], list[int]] | None = getattr(inferer, "agents", None)
        return [] if found is None else found()

    def restore(self, inferer: Inferer, snapshot: AgentSnapshot) -> None:
        """The policy is told, if it knows something. Raises InputError for what nothing in the stack remembers."""
        if isinstance(inferer, Remembering):
            inferer.restore(snapshot)
        elif snapshot.arrays:
            problem = f"nothing here remembers {names(list(snapshot.arrays))}"
            raise InputError(problem, where="snapshot", hint="restore it where the same memories and noises are")


class StatefulInferer(InfererExt):
    """A policy with a stack around it.

    What agents remember is in the stack, so they live on when the policy is replaced. The stack is invoked for as many
    rows as the policy takes at once: several times for a batch that it takes in several calls. Inputs and outputs are
    those that the stack leaves; raw ones are those of the policy.
    """

    def __init__(self, stack: InfererWrapper, inferer: Inferer) -> None:
        interface_of(inferer)  # so that what is no inferer is refused with its name
        if not hasattr(stack, "invoke"):
            raise InputError(f"wanted an InfererWrapper, got {type(stack).__name__}", where="stack")
        self.stack = stack
        self._inferer = inferer
        self._inputs = as_slots(stack.input_shapes(inferer))
        self._outputs = as_slots(stack.output_shapes(inferer))

    @property
    def inferer(self) -> Inferer:
        """The policy in the middle."""
        return self._inferer

    @staticmethod
    def check_compatible_shapes(old: Inferer, new: Inferer) -> None:
        """Raises IncompatibleInferer where ``new`` cannot take the place of ``old``.

        It has the same inputs and outputs: names, order, shapes, types; raw ones, and those that it shows.
        """
        check_compatible(interface_of(old), interface_of(new))
        try:
            check_compatible(_shown(old), _shown(new))
        except IncompatibleInferer as error:
            if isinstance(new, StatefulInferer) and not isinstance(old, StatefulInferer):
                error.hint = "it has a stack of its own: give the policy in its middle, new.inferer"
            raise

    def with_new_inferer(self, new: Inferer) -> StatefulInferer:
        """The same stack around another policy, of whatever class: what agents remember is shared by both.

        Where the policy in the middle has a stack too, and ``new`` has none, it is put in the middle of that. Raises
        IncompatibleInferer where its inputs or outputs are different; nothing has changed then.
        """
        inner = self._inferer
        if isinstance(inner, StatefulInferer) and not isinstance(new, StatefulInferer):
            return StatefulInferer(self.stack, inner.with_new_inferer(new))
        self.check_compatible_shapes(inner, new)
        return StatefulInferer(self.stack, new)

    def replace_inferer(self, new: Inferer) -> None:
        """Put another policy in the middle. Other threads may run meanwhile: each run is of one policy.

        Where the policy in the middle has a stack too, and ``new`` has none, it is put in the middle of that. Raises
        IncompatibleInferer where its inputs or outputs are different; nothing has changed then.
        """
        inner = self._inferer
        if isinstance(inner, StatefulInferer) and not isinstance(new, StatefulInferer):
            inner.replace_inferer(new)
            return
        self.check_compatible_shapes(inner, new)
        self._inferer = new

    def select_batch_size(self, max_count: int) -> int:
        """What the policy says."""
        return self._inferer.select_batch_size(max_count)

    def infer_raw(self, pad: ScratchPadView) -> None:
        """Run the rows of ``pad`` through the stack. When this raises, agents remember what they did before."""
        self.stack.invoke(self._inferer, pad)

    def raw_input_shapes(self) -> Slots:
        """The inputs of the model, in order."""
        return self._inferer.raw_input_shapes()

    def raw_output_shapes(self) -> Slots:
        """The outputs of the model, in order."""
        return self._inferer.raw_output_shapes()

    def input_shapes(self) -> Slots:
        """The inputs that the stack leaves, in the order of the model."""
        return self._inputs

    def output_shapes(self) -> Slots:
        """The outputs that the stack leaves, in the order of the model."""
        return self._outputs

    def begin_agent(self, id: int) -> None:  # noqa: A002 - the name in the interface that this follows
        """An agent comes: every layer is told, and the policy. One that is known begins anew."""
        self.stack.begin_agent(self._inferer, checked_id(id))

    def end_agent(self, id: int) -> None:  # noqa: A002 - as in `begin_agent`
        """An agent goes: every layer is told, and the policy."""
        self.stack.end_agent(self._inferer, checked_id(id))

    def remember(self, ids: Iterable[int]) -> Callable[[], None]:
        """A function that brings these agents back to where they are now."""
        return self.stack.remember(self._inferer, list(ids))

    def snapshot(self, ids: Iterable[int] | None = None) -> AgentSnapshot:
        """What is known of these agents, or of all. Raises InputError for one that is not known."""
        return self.stack.snapshot(self._inferer, None if ids is None else checked_ids(ids))

    def agents(self) -> list[int]:
        """Who has a memory in the stack or below it, in the order in which they came; nobody where there is none."""
        return self.stack.agents(self._inferer)

    def restore(self, snapshot: AgentSnapshot) -> None:
        """Make the agents of a snapshot what they were. Raises InputError where it does not fit, changing nothing."""
        if not isinstance(snapshot, AgentSnapshot):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"wanted an AgentSnapshot, got {type(snapshot).__name__}", where="snapshot")
        self.stack.restore(self._inferer, snapshot)


def _shown(inferer: Inferer) -> tuple[Slots, Slots]:
    return as_slots(inferer.input_shapes()), as_slots(inferer.output_shapes())


def _nothing() -> None:
    """What there is to bring back of a policy that remembers nothing."""
