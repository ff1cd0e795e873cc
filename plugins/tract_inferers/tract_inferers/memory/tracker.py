"""A layer that keeps the state of a recurrent policy, for each agent its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Self, TypeAlias, TypedDict, Unpack, cast

from tract_core.errors import InputError
from tract_inferers.compatible import interface_of
from tract_inferers.inferer import Inferer
from tract_inferers.layer import TableLayer, place_of
from tract_inferers.memory.pairs import RecurrentInfo, checked_pairs, find_pairs
from tract_inferers.observations import element
from tract_inferers.scratch import ScratchPadView
from tract_inferers.slots import as_slots, listed
from tract_inferers.snapshot import AgentSnapshot
from tract_inferers.stateful import BaseWrapper, StatefulInferer
from tract_inferers.table import AgentTable
from tract_inferers.wrapper import InfererWrapper

Unbegun: TypeAlias = Literal["refuse", "begin", "initial"]
"""What becomes of agents that run and were never begun: refused with InputError; begun, in this memory; or run from
the initial values, and nothing is kept of them."""


class MemoryOptions(TypedDict, total=False):
    """What can be chosen of a memory.

    ``initial``: what agents begin with, an array by the name of the input; zeros where there is none. ``unbegun``: see
    `Unbegun`; ``"refuse"`` where nothing is said.
    """

    initial: Mapping[str, Any]
    unbegun: Unbegun


_UNBEGUN: Final = ("refuse", "begin", "initial")


class RecurrentTrackerWrapper(TableLayer):
    """A memory for each agent, as a layer: what comes out of a step in some outputs goes into some inputs at the next.

    Those inputs and outputs are hidden. The state of all agents is one array per pair. Many threads may run different
    agents; where one agent runs in two at the same time, what the later one leaves is kept. What has ended or has begun
    anew while it ran keeps nothing of that run.
    """

    def __init__(
        self,
        inner: InfererWrapper,
        inferer: Inferer,
        infos: Iterable[RecurrentInfo],
        **options: Unpack[MemoryOptions],
    ) -> None:
        """Above ``inner``, around ``inferer``. Raises InputError where inputs and outputs do not fit."""
        initial, unbegun = options.get("initial", {}), options.get("unbegun", "refuse")
        raw = interface_of(inferer)
        inputs, outputs = as_slots(inner.input_shapes(inferer)), as_slots(inner.output_shapes(inferer))
        infos = _checked(infos)
        self._given = [place_of(one.inkey, raw[0], inputs, f"no input named {one.inkey!r}") for one in infos]
        self._back = [place_of(one.outkey, raw[1], outputs, f"no output named {one.outkey!r}") for one in infos]
        slots = [before for before, _ in checked_pairs(infos, inputs, outputs)]
        if not isinstance(initial, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(
                f"is a {type(initial).__name__}, wanted a dictionary from inputs to arrays", where="initial"
            )
        values = dict(initial)
        beginnings = [element(values.pop(slot.name, slot.zeros(1)[0, ...]), slot, refuse_nan=False) for slot in slots]
        if values:
            raise InputError(f"no memory {next(iter(values))!r}; there are {listed(slots)}", where="initial")
        if unbegun not in _UNBEGUN:
            raise InputError(f"is {unbegun!r}, wanted 'refuse', 'begin' or 'initial'", where="unbegun")
        self._unbegun = unbegun
        table = AgentTable(slots, beginnings, adopts=unbegun == "begin")
        super().__init__(inner, table, inputs=[one.inkey for one in infos], outputs=[one.outkey for one in infos])

    @classmethod
    def wrap(cls, inner: InfererWrapper, inferer: Inferer, **options: Unpack[MemoryOptions]) -> Self:
        """With the pairs that names, shapes and types give, see `find_pairs`. Raises InputError where there is none."""
        infos = find_pairs(as_slots(inner.input_shapes(inferer)), as_slots(inner.output_shapes(inferer)))
        return cls(inner, inferer, infos, **options)

    @classmethod
    def new(
        cls, inner: InfererWrapper, inferer: Inferer, infos: Iterable[RecurrentInfo], **options: Unpack[MemoryOptions]
    ) -> Self:
        """With these pairs. Raises InputError where inputs and outputs do not fit."""
        return cls(inner, inferer, infos, **options)

    def invoke(self, inferer: Inferer, pad: ScratchPadView) -> None:
        """Put in what the agents remember, call the layer below, and keep what comes out.

        Raises InputError for agents that were never begun, where those are refused.
        """
        with self._lock:
            found = self._table.find(pad.ids)
            if self._unbegun == "refuse" and not found.complete:
                raise _never_begun(self._table.missing(found))
            self._table.take(found, [pad.inputs[place] for place in self._given])
        self.inner.invoke(inferer, pad)
        with self._lock:
            self._table.put(found, [pad.outputs[place] for place in self._back])

    def begin_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - the name in the interface that this follows
        """The agent remembers the initial values from now on, whatever it remembered before."""
        self.inner.begin_agent(inferer, id)
        with self._lock:
            self._table.begin([id])

    def end_agent(self, inferer: Inferer, id: int) -> None:  # noqa: A002 - as in `begin_agent`
        """Forget the agent."""
        self.inner.end_agent(inferer, id)
        with self._lock:
            self._table.end([id])

    def snapshot(self, inferer: Inferer, ids: Iterable[int] | None = None) -> AgentSnapshot:
        """What this layer and those below know of these agents, or of all. Raises InputError for one not known."""
        agents = None if ids is None else list(ids)
        with self._lock:
            missing = [one for one in agents or () if one not in self._table]
        if missing:
            raise _never_begun(missing)
        return super().snapshot(inferer, agents)

    def agents(self, inferer: Inferer | None = None) -> list[int]:
        """Who is remembered, in the order in which they came."""
        with self._lock:
            return self._table.agents()


class RecurrentTracker(StatefulInferer):
    """A policy with a memory for each agent, see `RecurrentTrackerWrapper`."""

    stack: RecurrentTrackerWrapper

    def __init__(self, inferer: Inferer, infos: Iterable[RecurrentInfo], **options: Unpack[MemoryOptions]) -> None:
        super().__init__(RecurrentTrackerWrapper(BaseWrapper(), inferer, infos, **options), inferer)

    @classmethod
    def wrap(cls, inferer: Inferer, **options: Unpack[MemoryOptions]) -> Self:
        """With the pairs that names, shapes and types give, see `find_pairs`. Raises InputError where there is none."""
        interface_of(inferer)  # so that what is no inferer is refused with its name
        return cls(inferer, find_pairs(as_slots(inferer.input_shapes()), as_slots(inferer.output_shapes())), **options)

    @classmethod
    def new(cls, inferer: Inferer, infos: Iterable[RecurrentInfo], **options: Unpack[MemoryOptions]) -> Self:
        """With these pairs. Raises InputError where inputs and outputs do not fit."""
        return cls(inferer, infos, **options)


def _checked(infos: Iterable[Any]) -> list[RecurrentInfo]:
    found = list[Any](infos) if isinstance(infos, Iterable) else [infos]  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
    for one in found:
        if not isinstance(one, RecurrentInfo):
            raise InputError(f"{one!r:.60} is no pair, wanted RecurrentInfo('h_in', 'h_out')", where="memory")
    return cast("list[RecurrentInfo]", found)


def _never_begun(agents: list[int]) -> InputError:
    listed_ids = ", ".join(map(str, agents[:5])) + (f" and {len(agents) - 5} more" if len(agents) > 5 else "")
    who = f"agent {listed_ids} has" if len(agents) == 1 else f"agents {listed_ids} have"
    hint = f'call begin_agent({agents[0]}) first, or make the memory with unbegun="begin"'
    return InputError(f"{who} not begun", where="memory", hint=hint)
