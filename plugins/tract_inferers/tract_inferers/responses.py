"""What agents are told: by agent, ``responses[7]["action"]``, and as whole arrays, ``responses.arrays["action"]``."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, TypeAlias

import numpy as np

Array = np.ndarray[Any, Any]
State: TypeAlias = Mapping[str, Any]
"""What one agent observes: an array by the name of each input."""
Response: TypeAlias = dict[str, Array]
"""What one agent is told: an array by the name of each output."""


class Responses(Mapping[int, Response]):
    """The responses of a batch: a dictionary from agents to responses, made when they are asked for.

    ``ids``: the agents, in the order of the rows. ``arrays``: by the name of each output, an array with the agents
    along axis 0. The response of one agent is views on its rows.
    """

    __slots__ = ("_rows", "arrays", "ids")

    def __init__(self, ids: list[int], arrays: dict[str, Array]) -> None:
        self.ids = ids
        self.arrays = arrays
        self._rows: dict[int, int] | None = None

    def __getitem__(self, agent: int) -> Response:
        if self._rows is None:
            self._rows = {one: row for row, one in enumerate(self.ids)}
        row = self._rows.get(agent)
        if row is None:
            name: Any = agent  # that of an output is an easy mistake
            hint = f"; whole arrays are in .arrays[{name!r}]" if name in self.arrays else ""
            raise KeyError(f"no response for agent {agent!r}{hint}")
        return {name: array[row, ...] for name, array in self.arrays.items()}

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def items(self) -> ItemsView[int, Response]:
        """Agents with their responses, in the order of the rows."""
        return _Items(self)

    def values(self) -> ValuesView[Response]:
        """The responses, in the order of the rows."""
        return _Values(self)

    def each(self) -> Iterator[Response]:
        """The responses, in the order of the rows."""
        names = list(self.arrays)
        columns = [array if array.ndim > 1 else _elements(array) for array in self.arrays.values()]
        if len(names) == 1:
            (name,) = names
            return iter([{name: row} for row in columns[0]])
        return iter([dict(zip(names, rows, strict=True)) for rows in zip(*columns, strict=True)])

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {array.shape}" for name, array in self.arrays.items())
        return f"Responses({len(self.ids)} agents; {shapes})"


class _Items(ItemsView[int, Response]):
    _mapping: Responses

    def __iter__(self) -> Iterator[tuple[int, Response]]:
        return zip(self._mapping.ids, self._mapping.each(), strict=True)


class _Values(ValuesView[Response]):
    _mapping: Responses

    def __iter__(self) -> Iterator[Response]:
        return self._mapping.each()


def _elements(array: Array) -> Iterator[Array]:
    """The elements of an array with one axis, each as an array without axes, which a loop over it does not give."""
    return (array[row, ...] for row in range(len(array)))
