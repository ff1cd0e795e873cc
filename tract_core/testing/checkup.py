"""Look at everything that the installed plugins bring, and find what would otherwise never be noticed.

A row in a table that nobody asks, a module that is listed for one table and has rows for another, an operator that no
table knows how to compute: none of them ever fails, and none does what its author meant.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tract_core.errors import PluginError, TractError, meant
from tract_core.plugins.descriptor import CORE_PLUGIN, PluginRecord, PluginState
from tract_core.plugins.keys import AXES, COST, REFERENCE, STATE, SYMBOLIC
from tract_core.plugins.missing import RESERVED
from tract_core.plugins.registry import Registry
from tract_core.plugins.stages import what_is_wrong
from tract_core.plugins.tables import key_text

Finding = tuple[str, PluginError]
"""What was being done, and what is wrong."""


def check_up(registry: Registry) -> list[PluginRecord]:
    """Load all that plugins offer, and look it over. Every plugin, with its failures and remarks."""
    records = registry.load_everything()
    tables = registry.tables()
    for record in records:
        if record.name == CORE_PLUGIN or record.state in (PluginState.BLOCKED, PluginState.INCOMPATIBLE):
            continue
        listed = registry.listed_modules(record)
        loaded = {module: registry.loaded_rows(record, module) for names in listed.values() for module in names}
        record.remarks = list(_waiting(listed, tables))
        findings = [
            *_unknown_tables(listed, tables),
            *_unlisted_rows(listed, loaded, tables),
            *_operators_without_meaning(registry, loaded),
            *_keys_that_are_no_operators(loaded),
            *_names_of_runtimes(registry, record),
            *_places_of_stages(registry, record),
        ]
        for doing, error in findings:
            record.fail(doing, error)
    return records


Listed = Mapping[str, tuple[str, ...]]


def _unknown_tables(listed: Listed, tables: Iterable[str]) -> Iterator[Finding]:
    for table, modules in listed.items():
        near = _near(table, tables)
        if near is not None:
            problem = f"it lists {', '.join(modules)} for the table {table!r}, which nobody asks"
            yield "hook tract_rows", PluginError(problem, hint=f"did you mean {near!r}?")


def _waiting(listed: Listed, tables: Iterable[str]) -> Iterator[str]:
    """Rows for tables of plugins that are not installed, which is as it should be."""
    for table, modules in listed.items():
        if table not in tables and _near(table, tables) is None:
            yield f"the rows of {', '.join(modules)} wait: no installed plugin asks the table {table!r}"


def _near(table: str, tables: Iterable[str]) -> str | None:
    """The table that was meant, where that is not quite the name."""
    known = {*tables, *RESERVED["format"]}
    near = meant(table, known, alike=0.7)
    return near[0] if near and table not in known else None


def _unlisted_rows(listed: Listed, loaded: Mapping[str, Any], tables: Iterable[str]) -> Iterator[Finding]:
    for module, rows in loaded.items():
        if rows is not None and not len(rows):
            yield f"rows in {module}", PluginError("ROWS is empty", hint="add rows with @ROWS.row or ROWS.add")
        for table in sorted({row.table for row in rows or ()}):
            if table in tables and module not in listed.get(table, ()):
                problem = f"it has rows for the table {table!r}, for which no hook lists it: they are not used"
                hint = f"add {module!r} to {table!r} in what tract_rows returns"
                yield f"rows in {module}", PluginError(problem, hint=hint)


def _operators_without_meaning(registry: Registry, loaded: Mapping[str, Any]) -> Iterator[Finding]:
    """Operators of modules with rows that neither ``reference`` nor ``state`` has a row for."""
    for module, rows in loaded.items():
        for kind in _operators_in(module) if rows is not None else ():
            if registry[REFERENCE].find(kind) is None and registry[STATE].find(kind) is None:
                problem = f"{kind.__name__} has no row in 'reference' or 'state', so that no model with it can run"
                hint = f"add one: @ROWS.row(REFERENCE, {kind.__name__}), in a module that tract_rows lists"
                yield f"operators in {module}", PluginError(problem, hint=hint)


def _keys_that_are_no_operators(loaded: Mapping[str, Any]) -> Iterator[Finding]:
    """Classes that a module defines, and has rows for, and whose instances cannot be wired."""
    from tract_core.model.op import how_to_write, what_is_wrong_with

    about_operators = {key.name for key in (REFERENCE, STATE, COST, AXES, SYMBOLIC)}
    for module, rows in loaded.items():
        keys = dict.fromkeys(row.key for row in rows or () if row.table in about_operators)
        for key in keys:
            kind = getattr(sys.modules[module], key.partition(":")[2], None)
            if not isinstance(kind, type) or key_text(kind) != key or _has_children(kind):
                continue
            problem = what_is_wrong_with(kind)
            if problem is not None:
                doing = f"operators in {module}"
                yield doing, PluginError(f"{kind.__name__} is no operator: {problem}", hint=how_to_write(kind))


def _has_children(kind: type) -> bool:
    """Whether a class is a base of others, which need not be a dataclass itself."""
    return bool(type.__subclasses__(kind))


def _operators_in(module: str) -> list[type]:
    """The operators that are defined in a module and that nothing is derived from."""
    from tract_core.model.op import TypedOp

    found = vars(sys.modules[module]).values()
    kinds = [one for one in found if isinstance(one, type) and one.__module__ == module]
    return [one for one in kinds if TypedOp in one.__mro__ and not _has_children(one)]


def _places_of_stages(registry: Registry, record: PluginRecord) -> Iterator[Finding]:
    added = registry.stages()
    for name, stage in added.items():
        if registry.plugin_behind("tract_stages", name) is not record:
            continue
        wrong = what_is_wrong(stage, added)
        if wrong is not None:
            yield f"stage {name!r}", wrong
        if stage.transform not in registry.transforms():
            there = ", ".join(registry.transforms())
            yield (
                f"stage {name!r}",
                PluginError(f"there is no transform {stage.transform!r}", hint=f"there are {there}"),
            )


def _names_of_runtimes(registry: Registry, record: PluginRecord) -> Iterator[Finding]:
    for offered in registry.runtimes():
        if registry.plugin_behind("tract_runtimes", offered) is not record:
            continue
        try:
            with registry.blaming("tract_runtimes", offered, "set-up"):
                name = registry.load("tract_runtimes", offered)().name
        except TractError:
            continue  # the plugin's record holds the cause
        if name != offered:
            problem = f"it bears the name {name!r}, and is offered as {offered!r}"
            yield f"runtime {offered!r}", PluginError(problem, hint="let both be the same")
