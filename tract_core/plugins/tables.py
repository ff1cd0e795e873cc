"""Tables: one question about operators each, answered by rows that any distribution can add.

A `TableKey` names a table and says what its rows are. A module offers rows in a module-level ``ROWS = Rows()``; the
`Registry` collects them when a question is first asked. The keys of the core's own tables are in
`tract_core.plugins.keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from tract_core.errors import RegistrationError, Unsupported

K = TypeVar("K")
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])


RowCheck = Callable[[str, Any], "str | None"]
"""``(key, value) -> None``, or what is wrong with the row, as ``"is a list, wanted a function"``."""


def any_row(key: str, value: Any) -> str | None:
    """Every row is right."""
    return None


def function_row(key: str, value: Any) -> str | None:
    """A row is a function."""
    return None if callable(value) else f"is a {type(value).__name__}, wanted a function"


@dataclass(frozen=True, slots=True)
class TableKey(Generic[K, V]):
    """The name of a table, in one sentence what a row of it says, and how to tell a right row from a wrong one.

    A table whose keys are operator types accepts the type itself or its text ``"module:Class"``; the text form is for
    types of a distribution that may not be installed.
    """

    name: str
    meaning: str
    check: RowCheck = any_row


class Row(NamedTuple):
    """One row: the table's name, the key (types as ``"module:Class"``), and the value."""

    table: str
    key: str
    value: Any


def key_text(key: object) -> str:
    """The text that stands for a key: ``"module:Class"`` for a type, the text itself for a text."""
    if isinstance(key, type):
        return f"{key.__module__}:{key.__qualname__}"
    return str(key)


class Rows:
    """The rows that one module offers, in the order in which it wrote them."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def add(self, table: TableKey[K, V], key: K | str, value: V) -> None:
        """Offer one row."""
        self._rows.append(Row(table.name, key_text(key), value))

    def row(self, table: TableKey[Any, Any], *keys: object) -> Callable[[F], F]:
        """Decorator: offer the decorated function as the row of each of ``keys``."""

        def offer(function: F) -> F:
            for key in keys:
                self._rows.append(Row(table.name, key_text(key), function))
            return function

        return offer

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class Table(Generic[K, V]):
    """The rows of one table, from all distributions. Look-ups by operator type also try the type's base classes."""

    def __init__(self, key: TableKey[K, V]) -> None:
        self.key = key
        self._rows: dict[str, V] = {}
        self._owners: dict[str, str] = {}
        self._found: dict[object, V | None] = {}

    def insert(self, rows: Iterable[Row], owner: str) -> None:
        """Add the rows of ``owner``, the name of a distribution: all of them, or, when one is refused, none.

        Raises RegistrationError, naming both distributions, when a key is taken, and when a row does not fit the table.
        """
        checked: dict[str, Any] = {}
        for row in rows:
            self._check(row, owner, checked)
            checked[row.key] = row.value
        self._rows.update(checked)
        self._owners.update(dict.fromkeys(checked, owner))
        self._found.clear()

    def _check(self, row: Row, owner: str, before: Mapping[str, Any]) -> None:
        place = f"table {self.key.name!r}"
        if row.key in before:
            raise RegistrationError(f"{place}: {owner} has two rows for {row.key} in one module")
        if row.key in self._owners:
            raise RegistrationError(
                f"{place}: both {self._owners[row.key]} and {owner} have a row for {row.key}",
                hint=f"leave one of them out, as with TRACT_PLUGINS_BLOCK={owner}",
            )
        wrong = self.key.check(row.key, row.value)
        if wrong is not None:
            raise RegistrationError(
                f"{place}: the row of {owner} for {row.key} {wrong}", hint=f"a row says {self.key.meaning}"
            )

    def find(self, key: object) -> V | None:
        """The row for a name, for an operator type, or for the nearest base class of it that has one; else ``None``."""
        try:
            return self._found[key]
        except KeyError:
            pass
        names = [key_text(base) for base in key.__mro__] if isinstance(key, type) else [key_text(key)]
        result = next((self._rows[name] for name in names if name in self._rows), None)
        self._found[key] = result
        return result

    def __getitem__(self, key: object) -> V:
        result = self.find(key)
        if result is None:
            wanted = key.__name__ if isinstance(key, type) else key
            known = ", ".join(sorted(name.rpartition(":")[2] for name in self._rows)) or "none"
            raise Unsupported(f"table {self.key.name!r} has no row for {wanted}; it has: {known}")
        return result

    def __contains__(self, key: object) -> bool:
        return self.find(key) is not None

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> Mapping[str, V]:
        """All rows by the text of their key."""
        return dict(self._rows)

    def owner(self, key: object) -> str | None:
        """The distribution that brought the row of a key."""
        return self._owners.get(key_text(key))
