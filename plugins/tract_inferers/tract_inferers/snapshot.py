"""What is known of agents, as data: to keep it, to send it, and to bring them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen

Array = np.ndarray[Any, Any]


@frozen
class AgentSnapshot:
    """What is known of some agents. It can be pickled.

    ``agents``: their numbers. ``arrays``: by name, what each remembers, with the agents along axis 0: for a memory the
    name is that of the input, for noise ``"noise:KEY"``, the number of steps. ``unknown``: by name, the agents that
    nothing is known of there, as those that have ended; their rows are zeros. ``is_all``: whether all others are
    forgotten when it is restored, see `as_all`.
    """

    agents: tuple[int, ...]
    arrays: dict[str, Array]
    unknown: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    is_all: bool = False

    def as_all(self) -> AgentSnapshot:
        """The same, but when it is restored, whoever is not in it is forgotten, as is right for a replay."""
        return replace(self, is_all=True)

    def with_agents(self, agents: Sequence[int] | Mapping[int, int]) -> AgentSnapshot:
        """The same of other agents.

        ``agents``: their numbers, one for each of ``self.agents``, or the new by the old for those that get another.
        Raises InputError for another count of them, for one that is there twice, and for a new number for an agent
        that is not there.
        """
        if isinstance(agents, Mapping):
            strangers = sorted(set(agents) - set(self.agents))
            if strangers:
                raise InputError(f"agent {strangers[0]} is not in it", where="snapshot")
            given = tuple(agents.get(one, one) for one in self.agents)
        else:
            given = tuple(agents)
        if len(given) != len(self.agents) or len(set(given)) != len(given):
            raise InputError(f"wanted {len(self.agents)} different agents, got {list(given)}", where="snapshot")
        new = dict(zip(self.agents, given, strict=True))
        unknown = {name: frozenset(map(new.__getitem__, them)) for name, them in self.unknown.items()}
        return replace(self, agents=given, unknown=unknown)

    def of_agents(self, agents: Iterable[int]) -> AgentSnapshot:
        """Some of the agents, in this order. Raises InputError for one that is not there."""
        given = tuple(agents)
        place = {agent: row for row, agent in enumerate(self.agents)}
        strangers = [agent for agent in given if agent not in place]
        if strangers:
            raise InputError(f"agent {strangers[0]} is not in it", where="snapshot")
        rows = [place[agent] for agent in given]
        unknown = {name: found for name, them in self.unknown.items() if (found := them & set(given))}
        arrays = {name: array[rows] for name, array in self.arrays.items()}
        return replace(self, agents=given, arrays=arrays, unknown=unknown)

    def without(self, names: Iterable[str]) -> AgentSnapshot:
        """The same, without what is known under these names."""
        left = {name: array for name, array in self.arrays.items() if name not in names}
        unknown = {name: them for name, them in self.unknown.items() if name in left}
        return replace(self, arrays=left, unknown=unknown)

    def joined(self, other: AgentSnapshot) -> AgentSnapshot:
        """What both know, of the agents of both, under different names."""
        agents = tuple(dict.fromkeys((*self.agents, *other.agents)))
        parts = [one._widened(agents) for one in (self, other)]
        arrays = {name: array for part in parts for name, array in part.arrays.items()}
        return AgentSnapshot(agents, arrays, {name: them for part in parts for name, them in part.unknown.items()})

    def _widened(self, agents: tuple[int, ...]) -> AgentSnapshot:
        """The same, with more agents, of which nothing is known. ``agents`` are all, in the order that is wanted."""
        if agents == self.agents:
            return self
        place = {agent: row for row, agent in enumerate(agents)}
        rows = [place[agent] for agent in self.agents]
        more = frozenset(agents) - frozenset(self.agents)
        arrays = {name: np.zeros((len(agents), *array.shape[1:]), array.dtype) for name, array in self.arrays.items()}
        for name, array in arrays.items():
            array[rows] = self.arrays[name]
        unknown = {name: them for name in arrays if (them := self.unknown.get(name, frozenset()) | more)}
        return AgentSnapshot(agents, arrays, unknown)
