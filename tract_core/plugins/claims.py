"""Who comes first where several plugins bring the same: rows about one thing, offers of one name.

The owner comes first: of a table, the distribution that declares it; of an operator, the one whose package it is in;
of a name that this project has reserved, the distribution that it is reserved for. Then comes the core, then plugins by
name. What comes later is refused, alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tract_core.errors import RegistrationError
from tract_core.plugins.descriptor import PluginRecord
from tract_core.plugins.discovery import normal_name
from tract_core.plugins.missing import RESERVED
from tract_core.plugins.tables import Row, Standing, Table, clash

if TYPE_CHECKING:
    from tract_core.plugins.offers import Offer

_KINDS: Final = {
    "tract_commands": "subcommand",
    "tract_formats": "format",
    "tract_runtimes": "runtime",
    "tract_transforms": "transform",
}


class Brought(NamedTuple):
    """The rows of one module of a plugin for one table."""

    record: PluginRecord
    module: str
    rows: list[Row]

    def standing(self, row: Row, table_owner: PluginRecord | None) -> Standing:
        """How the plugin stands to one of these rows."""
        if self.record is table_owner:
            return Standing.OWNER
        about, colon, _ = row.key.partition(":")
        return Standing.HOME if colon and _package(about) == _package(self.module) else Standing.NEWCOMER


def take_rows(
    table: Table[Any, Any], brought: Iterable[Brought], table_owner: PluginRecord | None
) -> Iterator[tuple[Brought, RegistrationError]]:
    """Add all rows to a table, in the order of their standing; what was refused, by module and by who was first."""
    rows = [(one.standing(row, table_owner), one, row) for one in brought for row in one.rows]
    refused: dict[tuple[str, str, str], tuple[Brought, list[str]]] = {}
    for standing, one, row in sorted(rows, key=lambda claim: claim[0]):
        first = table.add(row, one.record.distribution, standing, one.record.name)
        if first is not None:
            refused.setdefault((one.record.name, one.module, first), (one, []))[1].append(row.key)
    for (_, _, first), (one, keys) in refused.items():
        yield one, clash(table.key, keys, first, one.record.distribution)


Offers = Mapping[str, tuple[Any, PluginRecord]]


def take_offers(
    hook: str, answers: Iterable[tuple[PluginRecord, Offer]]
) -> tuple[Offers, list[tuple[PluginRecord, RegistrationError]]]:
    """What is offered to a hook under each name, and by whom; and what was refused."""
    claims = [
        (_rank(hook, name, value, record), name, value, record) for record, o in answers for name, value in o.items()
    ]
    taken: dict[str, tuple[Any, PluginRecord]] = {}
    refused: list[tuple[PluginRecord, RegistrationError]] = []
    for _, name, value, record in sorted(claims, key=lambda claim: claim[0]):
        if name not in taken:
            taken[name] = (value, record)
            continue
        first, second = taken[name][1].distribution, record.distribution
        problem = f"both {first} and {second} offer {name!r}; that of {first} is used"
        hint = f"rename that of {second}, or leave one of the two out, as with TRACT_PLUGINS_BLOCK={record.name}"
        refused.append((record, RegistrationError(problem, hint=hint)))
    return taken, refused


def _rank(hook: str, name: str, value: Any, record: PluginRecord) -> int:
    if hook == "tract_tables":
        return not at_home(value, record)
    reserved = RESERVED.get(_KINDS.get(hook, ""), {}).get(name)
    return reserved is not None and normal_name(record.distribution) not in reserved


def at_home(reference: str, record: PluginRecord) -> bool:
    """Whether ``"module:attribute"`` is in the plugin's own package."""
    return _package(reference.partition(":")[0]) == _package(record.target)


def _package(module: str) -> str:
    return module.partition(".")[0]
