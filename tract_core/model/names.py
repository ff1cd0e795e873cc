"""The names of a graph's nodes: each leads to one node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tract_core.errors import GraphError
from tract_core.texts import steers


def checked_name(name: str) -> str:
    """``name``, which may be shown as it is. Raises GraphError where it holds a character that steers a terminal."""
    if not name.isprintable() and steers(name):
        raise GraphError(
            f"the name {name[:80]!r} has a character that cannot be shown",
            hint="names are letters, digits and signs; tract_core.texts.printable escapes the others",
        )
    return name


class Names(Mapping[str, int]):
    """Ids of nodes by name. `free` gives a name that no node has, however many names like it are taken."""

    def __init__(self, ids: Iterable[tuple[str, int]] = ()) -> None:
        self._ids = dict(ids)
        self._first_free: dict[str, int] = {}
        """For a name, the lowest number that may be free as its suffix; those below are taken."""

    def __getitem__(self, name: str) -> int:
        return self._ids[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def free(self, name: str) -> str:
        """``name`` if no node has it, else ``name.1``, ``name.2`` ..., the first that is free."""
        if name not in self._ids:
            return name
        number = self._first_free.get(name, 1)
        while f"{name}.{number}" in self._ids:
            number += 1
        self._first_free[name] = number
        return f"{name}.{number}"

    def give(self, name: str, node_id: int) -> None:
        """Let a node have a name that is free."""
        self._ids[name] = node_id

    def take(self, name: str, node_id: int) -> None:
        """Take a name away from a node, if it has it."""
        if self._ids.get(name) != node_id:
            return
        del self._ids[name]
        base, _, number = name.rpartition(".")
        if base in self._first_free and number.isdecimal():
            self._first_free[base] = min(self._first_free[base], int(number[:18]))

    def copy(self) -> Names:
        """The same names, which change on their own."""
        return Names(self._ids.items())
