"""What is known of each agent, as the rows of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_inferers.observations import checked_ids
from tract_inferers.slots import Slot
from tract_inferers.snapshot import AgentSnapshot

Array = np.ndarray[Any, Any]

INITIAL: Final = 0
"""The row of the initial values, which every agent reads that has none of its own."""

_ROOM: Final = 8
"""Rows at first."""


@frozen
class Found:
    """Where agents are in a table: the row of each, at the time of the change number ``when``.

    ``ids``: these agents.
    """

    ids: list[int]
    numbers: Array
    """``ids``, as an array of u64."""
    rows: Array
    when: int
    complete: bool
    """Whether each has a row of its own."""


class AgentTable:
    """Arrays with a row for each agent: one per slot, contiguous, of shape ``(capacity, *shape)``.

    ``initial``: what a new agent has, one array per slot. ``adopts``: whether `put` gives a row to agents that have
    none. Rows of agents that have ended are used again; arrays grow by doubling, and stay as large as they were.

    It has no lock of its own: who shares one holds a lock in every call. What is known of an agent that has ended, or
    that began anew, while a batch ran is not overwritten by what comes out of that batch.
    """

    def __init__(self, slots: Sequence[Slot], initial: Sequence[Array], *, adopts: bool) -> None:
        self.slots = slots
        self._adopts = adopts
        self._arrays = [slot.empty(_ROOM) for slot in slots]
        self._born = np.zeros(_ROOM, np.int64)  # the change with which the agent of a row began
        for array, value in zip(self._arrays, initial, strict=True):
            array[INITIAL] = value
        self._rows: dict[int, int] = {}
        self._free = list(range(_ROOM - 1, INITIAL, -1))
        self._changes = 0
        self._last = self._looked_up([])

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, agent: object) -> bool:
        return agent in self._rows

    @property
    def capacity(self) -> int:
        """Rows that there is room for without growing."""
        return len(self._born)

    def agents(self) -> list[int]:
        """Who has a row, in the order in which they came."""
        return list(self._rows)

    def begin(self, agents: Iterable[int]) -> None:
        """Give each a row with the initial values, whether it had one or not."""
        self._changes += 1
        rows = [self._row_for(agent) for agent in agents]
        self._born[rows] = self._changes
        for array in self._arrays:
            array[rows] = array[INITIAL]

    def end(self, agents: Iterable[int]) -> None:
        """Take the rows of those that have one."""
        gone = [self._rows.pop(agent) for agent in agents if agent in self._rows]
        if gone:
            self._changes += 1
            self._free += gone

    def find(self, ids: list[int]) -> Found:
        """Where these agents are. It takes next to no time for those of the last call."""
        last = self._last
        if last.when != self._changes or last.ids != ids:
            last = self._last = self._looked_up(list(ids))
        return last

    def missing(self, found: Found) -> list[int]:
        """Those that have no row."""
        return [] if found.complete else [found.ids[place] for place in np.flatnonzero(found.rows == INITIAL)]

    def take(self, found: Found, out: Sequence[Array]) -> None:
        """Copy the rows of agents, right after `find`, to arrays of shape ``(agents, *shape)``."""
        for array, filled in zip(self._arrays, out, strict=True):
            array.take(found.rows, axis=0, out=filled, mode="clip")  # the mode that needs no buffer

    def put(self, found: Found, values: Sequence[Array]) -> None:
        """Copy arrays of shape ``(agents, *shape)`` to the rows of agents that were found before a batch ran.

        Those that had none get one, or nothing is kept of them, see ``adopts``.
        """
        if self._adopts and not found.complete:
            when = self._changes
            self.begin(agent for agent in self.missing(found) if agent not in self._rows)
            found = self._still(found, born_after=when)
        elif found.when != self._changes:
            found = self._still(found, born_after=self._changes)
        if found.complete:
            for array, value in zip(self._arrays, values, strict=True):
                array[found.rows] = value
            return
        places = np.flatnonzero(found.rows != INITIAL)
        for array, value in zip(self._arrays, values, strict=True):
            array[found.rows[places]] = value[places]

    def remember(self, ids: list[int]) -> Callable[[], None]:
        """A function that brings these agents back to where they are now."""
        found = self.find(ids)
        values = [array[found.rows] for array in self._arrays]
        missing = self.missing(found)

        def undo() -> None:
            if self._adopts:
                self.end(missing)
            known = np.flatnonzero(found.rows != INITIAL)
            ids = [found.ids[place] for place in known]
            there = Found(ids, found.numbers[known], found.rows[known], found.when, complete=True)
            self.put(there, [value[known] for value in values])

        return undo

    def snapshot(self, ids: list[int] | None) -> AgentSnapshot:
        """What is known of these agents, or of all; those that have no row have the initial values."""
        found = self._looked_up(self.agents() if ids is None else ids)
        arrays = {slot.name: array[found.rows] for slot, array in zip(self.slots, self._arrays, strict=True)}
        return AgentSnapshot(tuple(found.ids), arrays)

    def check(self, snapshot: AgentSnapshot) -> None:
        """Raises InputError where a snapshot is none of such a table: names, shapes, types, agents."""
        agents = checked_ids(list(snapshot.agents))
        for slot in self.slots:
            array = snapshot.arrays.get(slot.name)
            if array is None:
                hint = "restore it where the same memories and noises are"
                raise InputError(f"it holds nothing of {slot.name!r}", where="snapshot", hint=hint)
            array = np.asarray(array)
            wanted = (len(agents), *slot.shape)
            if array.shape != wanted or array.dtype != slot.dtype:
                found = f"{slot.name!r} is {array.dtype.name} of shape {list(array.shape)}"
                raise InputError(f"{found}, wanted {slot.dtype.name} of shape {list(wanted)}", where="snapshot")

    def restore(self, snapshot: AgentSnapshot) -> None:
        """Make the agents of a snapshot, which `check` has found right, what they were."""
        gone = frozenset[int]().union(*(snapshot.unknown.get(slot.name, ()) for slot in self.slots))
        self.end(self.agents() if snapshot.is_all else gone)
        places = [place for place, agent in enumerate(snapshot.agents) if agent not in gone]
        self.begin(snapshot.agents[place] for place in places)
        rows = [self._rows[snapshot.agents[place]] for place in places]
        for slot, array in zip(self.slots, self._arrays, strict=True):
            array[rows] = snapshot.arrays[slot.name][places]

    def _looked_up(self, ids: list[int]) -> Found:
        found = self._rows.get
        rows = np.array([found(agent, INITIAL) for agent in ids], np.intp)
        return Found(ids, np.array(ids, np.uint64), rows, self._changes, bool(rows.all()))

    def _still(self, found: Found, *, born_after: int) -> Found:
        """Those that are what they were: they have kept their row, or got one after the change ``born_after``."""
        now = self._looked_up(found.ids)
        born = self._born[now.rows]
        same = ((now.rows == found.rows) & (born <= found.when)) | (born > born_after)
        rows = np.where(same, now.rows, INITIAL)
        return Found(found.ids, found.numbers, rows, now.when, bool(rows.all()))

    def _row_for(self, agent: int) -> int:
        row = self._rows.get(agent)
        if row is None:
            if not self._free:
                self._grow()
            row = self._rows[agent] = self._free.pop()
        return row

    def _grow(self) -> None:
        room = 2 * self.capacity
        self._free = list(range(room - 1, self.capacity - 1, -1))
        self._born = np.concatenate([self._born, np.zeros_like(self._born)])
        for place, (slot, array) in enumerate(zip(self.slots, self._arrays, strict=True)):
            self._arrays[place] = grown = slot.empty(room)
            grown[: len(array)] = array
