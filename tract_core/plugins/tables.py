"""Tables: one question about operators each, answered by rows that any distribution can add.

A `TableKey` names a table and says what its rows are. A module offers rows in a module-level ``ROWS = Rows()``; the
`Registry` collects them when a question is first asked. The keys of the core's own tables are in
`tract_core.plugins.keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tract_core.errors import RegistrationError, Unsupported
from tract_core.frozen import frozen

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


def any_answer(found: Any, *arguments: Any) -> str | None:
    """Every answer is right."""
    return None


def whole_key(key: str) -> str:
    """Every key is about something of its own."""
    return key


@frozen
class TableKey(Generic[K, V]):
    """The name of a table, in one sentence what a row of it says, and how to tell a right row from a wrong one.

    A table whose keys are operator types accepts the type itself or its text ``"module:Class"``; the text form is for
    types of a distribution that may not be installed.

    ``subject``: what a key is about; all rows about one subject come from one distribution. ``rival``: a table
    whose rows answer the same question; nobody adds a row here for an operator of somebody else that has one there.
    ``answer``: what is wrong with what a row returned for these arguments, see `Registry.answer`. ``types``: the
    operator types that a row looks at, for a table whose keys are names. ``meaning``: that sentence.
    """

    name: str
    meaning: str
    check: RowCheck = any_row
    subject: Callable[[str], str] = whole_key
    rival: TableKey[Any, Any] | None = None
    answer: Callable[..., str | None] = any_answer
    types: Callable[[Any], Sequence[type]] | None = None


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
        """Offer one row. Raises RegistrationError for what is no table or no key."""
        self._rows.append(Row(_name_of(table), _checked_key(key), value))

    def row(self, table: TableKey[Any, Any], *keys: object) -> Callable[[F], F]:
        """Decorator: offer the decorated function as the row of each of ``keys``.

        Raises RegistrationError for what is no table or no key.
        """
        name, texts = _name_of(table), [_checked_key(key) for key in keys]

        def offer(function: F) -> F:
            self._rows += [Row(name, key, function) for key in texts]
            return function

        return offer

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _name_of(table: object) -> str:
    if isinstance(table, TableKey):
        return table.name
    hint = "write it as @ROWS.row(REFERENCE, Op), or ROWS.add(REFERENCE, Op, function)"
    raise RegistrationError(f"a row names its table first, as REFERENCE; found {_shown(table)}", hint=hint)


def _checked_key(key: object) -> str:
    if isinstance(key, (type, str)) and not isinstance(key, TableKey):
        return key_text(key)
    raise RegistrationError(f"the key of a row is a class or a text, found {_shown(key)}")


def _shown(value: object) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


class Standing(IntEnum):
    """Who comes first where several distributions bring a row about one thing."""

    OWNER = 0
    """The distribution that declares the table."""
    HOME = 1
    """The distribution whose operator the row is about."""
    NEWCOMER = 2
    """Anybody else."""


class DeferredRow(NamedTuple):
    """In the place of a row's value: the module that has it, which was not imported yet, of a plugin.

    ``types``: the texts of the operator types that the row looks at.
    """

    plugin: str
    module: str
    types: tuple[str, ...] = ()


@dataclass(slots=True)
class Entry:
    """A row that was taken: its value, the distribution and the plugin that brought it, and how they stand to it."""

    value: Any
    owner: str
    standing: Standing
    plugin: str


Keep = Callable[["Table[Any, Any]", DeferredRow], None]
"""``(table, promise)``: keep a promise, by `Table.keep`; or fill the table again, without it, where that cannot be."""

Report = Callable[[str, RegistrationError], None]
"""``(plugin, error)``: told of a row that is not used, when that shows only in a look-up."""


class Table(Generic[K, V]):
    """The rows of one table, from all distributions. Look-ups by operator type also try the type's base classes.

    A row whose module was not imported yet is promised; its module is imported when the row is asked for.

    ``rival``: a table whose rows answer the same question. ``report``: see `find`. ``keep``: imports what is promised.
    """

    def __init__(
        self,
        key: TableKey[K, V],
        rival: Table[K, Any] | None = None,
        report: Report | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.key = key
        self._rival = rival
        self._report = report
        self._keep = keep
        self._entries: dict[str, Entry] = {}
        self._subjects: dict[str, Entry] = {}
        self._found: dict[object, Entry | None] = {}
        self._aside: dict[object, None] = {}

    def check(self, rows: Iterable[Row], owner: str) -> None:
        """Raises RegistrationError when a row of a module of ``owner`` does not fit, or two of them have one key."""
        place, seen = f"table {self.key.name!r}", set[str]()
        for row in rows:
            if row.key in seen:
                raise RegistrationError(f"{place}: {owner} has two rows for {row.key} in one module")
            seen.add(row.key)
            wrong = self.key.check(row.key, row.value)
            if wrong is not None:
                raise RegistrationError(
                    f"{place}: the row of {owner} for {row.key} {wrong}", hint=f"a row says {self.key.meaning}"
                )

    def add(self, row: Row, owner: str, standing: Standing = Standing.NEWCOMER, plugin: str = "") -> str | None:
        """Take a row of ``owner``, the name of a distribution. Returns the distribution that was there first, if any.

        ``plugin``: which of the plugins of that distribution brings it. Rows are added in the order of their standing.
        """
        subject = self.key.subject(row.key)
        first = self._entries.get(row.key) or self._subjects.get(subject)
        if first is not None and (first.owner != owner or row.key in self._entries):
            return first.owner
        entry = Entry(row.value, owner, standing, plugin)
        self._entries[row.key] = entry
        self._subjects.setdefault(subject, entry)
        self._found = dict(self._aside)
        return None

    def hold(self, other: Table[K, V]) -> None:
        """Hold the rows of another table, and no others."""
        self._entries, self._subjects, self._found = other._entries, other._subjects, dict(self._aside)

    def keep(self, plugin: str, module: str, rows: Iterable[Row]) -> None:
        """Put the rows of a module in the place of what was promised for it."""
        for row in rows:
            entry = self._entries.get(row.key)
            if entry is not None and isinstance(entry.value, DeferredRow) and entry.value[:2] == (plugin, module):
                entry.value = row.value

    def find(self, key: object) -> V | None:
        """The row for a name, for an operator type, or for the nearest base class of it that has one; else ``None``.

        A newcomer's row for somebody else's operator, which already has an answer by a base class or in the rival
        table, is reported and not used.
        """
        try:
            found = self._found[key]
        except KeyError:
            found = self._find(key)
        while found is not None and found.value.__class__ is DeferredRow:
            self._import(found.value)
            found = self._find(key)
        return None if found is None else found.value

    def _import(self, promise: DeferredRow) -> None:
        assert self._keep is not None  # only who keeps promises makes some
        self._keep(self, promise)

    def set_aside(self, kind: type) -> None:
        """Look-ups of an operator type give nothing from now on."""
        self._aside[kind] = self._found[kind] = None

    def _find(self, key: object) -> Entry | None:
        try:
            return self._found[key]
        except KeyError:
            pass
        hits = self._hits(key)
        nearest = next(iter(hits.values()), None)
        if nearest is None or nearest.standing is not Standing.NEWCOMER or not isinstance(key, type):
            self._found[key] = nearest
            return nearest
        return self._elder(key, hits)

    def _hits(self, key: object) -> dict[str, Entry]:
        """The rows of a key, and of the bases of a type, the nearest first."""
        names = [key_text(base) for base in key.__mro__] if isinstance(key, type) else [key_text(key)]
        return {name: self._entries[name] for name in names if name in self._entries}

    def _elder(self, kind: type, hits: Mapping[str, Entry]) -> Entry | None:
        """The entry to use for a type whose nearest row is a newcomer's."""
        name, nearest = next(iter(hits.items()))
        answers = [*hits.values(), *(self._rival._hits(kind).values() if self._rival is not None else ())]
        first = next((entry for entry in answers if entry.standing is not Standing.NEWCOMER), None)
        self._found[kind] = nearest if first is None else first if first in hits.values() else None
        if first is not None and self._report is not None:
            self._report(nearest.plugin, clash(self.key, [name], first.owner, nearest.owner))
        return self._found[kind]

    def __getitem__(self, key: object) -> V:
        result = self.find(key)
        if result is None:
            wanted = key.__name__ if isinstance(key, type) else key
            known = ", ".join(sorted(name.rpartition(":")[2] for name in self._entries)) or "none"
            raise Unsupported(f"table {self.key.name!r} has no row for {wanted}; it has: {known}")
        return result

    def __contains__(self, key: object) -> bool:
        return self.find(key) is not None

    def __len__(self) -> int:
        return len(self._entries)

    def rows(self) -> Mapping[str, V]:
        """All rows by the text of their key; their modules are imported."""
        while promised := [entry.value for entry in self._entries.values() if isinstance(entry.value, DeferredRow)]:
            self._import(promised[0])
        return {name: entry.value for name, entry in self._entries.items()}

    def names(self) -> list[str]:
        """The texts of all keys. Nothing is imported."""
        return list(self._entries)

    def types(self, key: str) -> tuple[str, ...]:
        """The texts of the operator types that a row looks at. Nothing is imported."""
        value = self._entries[key].value
        if isinstance(value, DeferredRow):
            return value.types
        return () if self.key.types is None else tuple(map(key_text, self.key.types(value)))

    def owner(self, key: object) -> str | None:
        """The distribution that brought the row which a look-up of ``key`` gives."""
        found = self._find(key)
        return None if found is None else found.owner

    def plugin(self, key: object) -> str | None:
        """The plugin, of that distribution, that brought it."""
        found = self._find(key)
        return None if found is None else found.plugin


NAMED_IN_CLASH: Final = 5
"""Rows that the error about a clash lists; it counts the others."""


def clash(table: TableKey[Any, Any], keys: Sequence[str], first: str, second: str) -> RegistrationError:
    """The error for rows of ``second`` that are not used, as ``first`` has rows about the same."""
    listed = ", ".join(keys[:NAMED_IN_CLASH])
    more = f" and {len(keys) - NAMED_IN_CLASH} more" if len(keys) > NAMED_IN_CLASH else ""
    rows, those = ("a row", "that") if len(keys) == 1 else ("rows", "those")
    if first == second:
        problem = f"{second} has {rows} for {listed}{more} in two modules; the first is used"
        return RegistrationError(f"table {table.name!r}: {problem}", hint="remove one of them")
    problem = f"both {first} and {second} have {rows} for {listed}{more}; {those} of {first} is used"
    if len(keys) > 1:
        problem = problem.removesuffix("is used") + "are used"
    hint = f"take {those} of {second} out; or leave one of the two out, as with TRACT_PLUGINS_BLOCK={second}"
    return RegistrationError(f"table {table.name!r}: {problem}", hint=hint)
