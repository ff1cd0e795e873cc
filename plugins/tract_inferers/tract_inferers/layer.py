"""What layers have in common that know something of each agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from tract_core.errors import InputError, meant
from tract_inferers.inferer import Inferer
from tract_inferers.slots import Slots, as_slots, listed
from tract_inferers.snapshot import AgentSnapshot
from tract_inferers.table import AgentTable
from tract_inferers.wrapper import InfererWrapper


class TableLayer(InfererWrapper):
    """A layer with a table of agents, which takes inputs and outputs of the layer below from who is above.

    ``table``: what it knows, for whoever holds ``lock``. ``inputs``, ``outputs``: the names that it hides.
    """

    def __init__(
        self, inner: InfererWrapper, table: AgentTable, *, inputs: Iterable[str], outputs: Iterable[str] = ()
    ) -> None:
        self.inner = inner
        self._table = table
        self._lock = Lock()
        self._inputs = frozenset(inputs)
        self._outputs = frozenset(outputs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def input_shapes(self, inferer: Inferer) -> Slots:
        """Those of the layer below that this one does not hide."""
        return [slot for slot in as_slots(self.inner.input_shapes(inferer)) if slot.name not in self._inputs]

    def output_shapes(self, inferer: Inferer) -> Slots:
        """Those of the layer below that this one does not hide."""
        return [slot for slot in as_slots(self.inner.output_shapes(inferer)) if slot.name not in self._outputs]

    def remember(self, inferer: Inferer, ids: Iterable[int]) -> Callable[[], None]:
        """A function that brings these agents back to where they are now, in this layer and those below."""
        agents = list(ids)
        undo_below = self.inner.remember(inferer, agents)
        with self._lock:
            undo_here = self._table.remember(agents)

        def undo() -> None:
            undo_below()
            with self._lock:
                undo_here()

        return undo

    def snapshot(self, inferer: Inferer, ids: Iterable[int] | None = None) -> AgentSnapshot:
        """What this layer and those below know of these agents, or of all. Raises InputError for one not known."""
        agents = None if ids is None else list(ids)
        below = self.inner.snapshot(inferer, agents)
        with self._lock:
            return below.joined(self._table.snapshot(agents))

    def agents(self, inferer: Inferer) -> list[int]:
        """Who has a memory below, in the order in which they came: what this layer knows is none."""
        return self.inner.agents(inferer)

    def restore(self, inferer: Inferer, snapshot: AgentSnapshot) -> None:
        """Make the agents of a snapshot what they were; what has been learned of others stays.

        Raises InputError where it does not fit this layer or one below, changing nothing.
        """
        self._table.check(snapshot)
        self.inner.restore(inferer, snapshot.without([slot.name for slot in self._table.slots]))
        with self._lock:
            self._table.restore(snapshot)


def place_of(name: str, raw: Slots, shown: Slots, missing: str) -> int:
    """Where ``name`` is in ``raw``, if it is among those that are ``shown``; else raises InputError, ``missing``."""
    there = [slot.name for slot in shown]
    if name not in there:
        near = meant(str(name), there)
        hint = f"did you mean {near[0]!r}?" if near else None
        if any(slot.name == name for slot in raw):
            hint = "a layer below takes care of it already"
        raise InputError(f"{missing}; there are {listed(shown)}", hint=hint)
    return next(place for place, slot in enumerate(raw) if slot.name == name)
