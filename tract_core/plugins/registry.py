"""The registry: which plugins are installed, and the tables that they fill.

Plugins are found through the entry-point group ``tract`` when they are first asked for, each asked apart from the others. A
plugin that fails, at whatever moment, is recorded with the cause, reported once as a warning, and disturbs nobody.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, TypeVar, cast

import pluggy

from tract_core.errors import PluginError, RegistrationError
from tract_core.plugins import builtin, hookspecs
from tract_core.plugins.descriptor import Frontend, PluginRecord, PluginState, load_object
from tract_core.plugins.tables import Rows, Table, TableKey

K = TypeVar("K")
V = TypeVar("V")

GROUP = "tract"
CORE = "tract-core"


class PluginWarning(UserWarning):
    """A plugin failed and was set aside."""


class Registry:
    """Plugins and tables. Make one per test; `tract_core.plugins.default_registry` is the one of the installed plugins.

    ``plugins``: modules (or objects) with hook implementations, by name, instead of the installed ones. ``discover``: look
    for installed plugins. ``only``, ``block``: names of plugins to keep or to leave out (default: the variables
    ``TRACT_PLUGINS``, where ``none`` keeps none, and ``TRACT_PLUGINS_BLOCK``, comma-separated). ``strict``: raise instead of
    recording failures.
    """

    def __init__(
        self,
        plugins: Mapping[str, object] | None = None,
        *,
        discover: bool = True,
        only: Iterable[str] | None = None,
        block: Iterable[str] | None = None,
        strict: bool = False,
    ) -> None:
        self.strict = strict
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._records: dict[str, PluginRecord] = {}
        self._given = dict(plugins or {})
        self._discover = discover
        self._only = _names("TRACT_PLUGINS") if only is None else list(only)
        self._block = (_names("TRACT_PLUGINS_BLOCK") or []) if block is None else list(block)
        self._tables: dict[str, Table[Any, Any]] = {}
        self._modules_done: set[tuple[str, str, str]] = set()
        self._offers: dict[str, dict[str, tuple[Any, str]]] = {}
        self._lock = threading.RLock()
        self._found = False

    # -- tables ----------------------------------------------------------------------------------------------------

    def __getitem__(self, key: TableKey[K, V]) -> Table[K, V]:
        """The table of that key, filled from every plugin at the first question."""
        table = self._tables.get(key.name)
        if table is None:
            with self._lock:
                table = self._tables.get(key.name) or self._fill(key)
        return cast("Table[K, V]", table)

    def _fill(self, key: TableKey[K, V]) -> Table[K, V]:
        table: Table[K, V] = Table(key)
        for hook in ("tract_operators", "tract_importers"):
            for record, offer in self._ask(hook):
                for module in cast("Mapping[str, Iterable[str]]", offer).get(key.name, ()):
                    self._guard(record, f"rows of {key.name!r} in {module}", self._load_rows, table, module, record)
        self._tables[key.name] = table
        return table

    def _load_rows(self, table: Table[Any, Any], module: str, record: PluginRecord) -> None:
        """Take a module's rows for one table: all of them, or, when one is refused, none."""
        if (table.key.name, module, record.name) in self._modules_done:
            return
        self._modules_done.add((table.key.name, module, record.name))
        rows = load_object(f"{module}:ROWS")
        if not isinstance(rows, Rows):
            raise RegistrationError(f"{module}.ROWS is a {type(rows).__name__}, wanted a tract_core.plugins.Rows")
        wanted = [row for row in rows if row.table == table.key.name]
        keys = [row.key for row in wanted]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise RegistrationError(f"{module} has two rows for {twice} in table {table.key.name!r}")
        for row in wanted:
            table.claim(row, record.distribution)
        for row in wanted:
            table.insert(row, record.distribution)
        if record.state is PluginState.AVAILABLE:
            record.state = PluginState.LOADED

    # -- named offers ----------------------------------------------------------------------------------------------

    def transforms(self) -> Mapping[str, str]:
        """Where the transforms are, by name."""
        return {name: cast(str, offer) for name, (offer, _) in self._named("tract_transforms").items()}

    def runtimes(self) -> Mapping[str, str]:
        """Where the runtimes are, by name."""
        return {name: cast(str, offer) for name, (offer, _) in self._named("tract_runtimes").items()}

    def commands(self) -> Mapping[str, str]:
        """Where the subcommands of ``tract`` are, by name."""
        return {name: cast(str, offer) for name, (offer, _) in self._named("tract_commands").items()}

    def frontends(self) -> Mapping[str, Frontend]:
        """The model formats, by name."""
        return {name: cast(Frontend, offer) for name, (offer, _) in self._named("tract_frontends").items()}

    def owner(self, hook: str, name: str) -> str | None:
        """The distribution behind a named offer of a hook."""
        found = self._named(hook).get(name)
        return found[1] if found else None

    def load(self, hook: str, name: str, reference: str) -> Any:
        """Import what a named offer leads to. Raises PluginError, naming the distribution and the cause."""
        owner = self.owner(hook, name)
        try:
            return load_object(reference)
        except Exception as error:
            for record in self._records.values():
                if record.distribution == owner and owner != CORE:
                    self._failed(record, f"{hook[len('tract_') :]} {name!r}", error, warn=False)
            raise PluginError(f"{name!r} of {owner} cannot be loaded: {error}", hint="see 'tract plugins'") from error

    def _named(self, hook: str) -> dict[str, tuple[Any, str]]:
        with self._lock:
            if hook not in self._offers:
                merged: dict[str, tuple[Any, str]] = {}
                for record, offer in self._ask(hook):
                    self._guard(record, hook, _merge_names, merged, offer, record)
                self._offers[hook] = merged
            return self._offers[hook]

    # -- plugins ---------------------------------------------------------------------------------------------------

    def plugins(self) -> list[PluginRecord]:
        """Every installed plugin, the core first, with its state."""
        self._find()
        return list(self._records.values())

    def _find(self) -> None:
        if self._found:
            return
        with self._lock:
            self._found = True
            core = PluginRecord("core", CORE, _core_version(), "tract_core.plugins.builtin")
            self._register(core, lambda: builtin)
            for name, plugin in self._given.items():
                record = PluginRecord(name, getattr(plugin, "DISTRIBUTION", name), "", type(plugin).__name__)
                self._register(record, lambda plugin=plugin: plugin)
            for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name) if self._discover else ():
                distribution = entry.dist.name if entry.dist else entry.name
                version = entry.dist.version if entry.dist else ""
                self._register(PluginRecord(entry.name, distribution, version, entry.value), _loader(entry))

    def _register(self, record: PluginRecord, load: Callable[[], object]) -> None:
        if record.name in self._records:
            other = self._records[record.name]
            error = RegistrationError(f"both {other.distribution} and {record.distribution} are plugin {record.name!r}")
            record.name = f"{record.name} ({record.distribution})"
            self._records[record.name] = record
            self._failed(record, "discovery", error)
            return
        self._records[record.name] = record
        if record.name != "core" and (record.name in self._block or not self._wanted(record.name)):
            record.state = PluginState.BLOCKED
            return
        self._guard(record, "import", self._admit, record, load)

    def _wanted(self, name: str) -> bool:
        return self._only is None or name in self._only

    def _admit(self, record: PluginRecord, load: Callable[[], object]) -> None:
        plugin = load()
        version = _api_version(plugin)
        if version[0] != hookspecs.API_VERSION[0] or version[1] > hookspecs.API_VERSION[1]:
            record.state = PluginState.INCOMPATIBLE
            wanted = ".".join(map(str, hookspecs.API_VERSION))
            record.failures.append(
                f"made for plugin API {version[0]}.{version[1]}, this is {wanted}: update {record.distribution}"
            )
            return
        self._manager.register(plugin, record.name)
        try:
            self._check_hooks(record.name)
        except Exception:
            self._manager.unregister(plugin)
            raise
        callers = self._manager.get_hookcallers(plugin) or []
        record.hooks = tuple(sorted(caller.name for caller in callers if caller.name != "tract_api_version"))

    def _check_hooks(self, name: str) -> None:
        plugin = self._manager.get_plugin(name)
        known = {hook for hook in dir(hookspecs) if hook.startswith("tract_")}
        offered = vars(plugin) if isinstance(plugin, ModuleType) else {n: getattr(plugin, n) for n in dir(plugin)}
        for attribute, value in offered.items():
            if hasattr(value, f"{hookspecs.PROJECT}_impl") and attribute not in known:
                raise PluginError(f"unknown hook {attribute!r}", hint=f"known hooks: {', '.join(sorted(known))}")

    def _ask(self, hook: str) -> list[tuple[PluginRecord, Any]]:
        """What every plugin answers to a hook; one that fails is recorded and skipped."""
        self._find()
        answers: list[tuple[PluginRecord, Any]] = []
        for implementation in reversed(getattr(self._manager.hook, hook).get_hookimpls()):
            record = self._records[implementation.plugin_name]
            answer = self._guard(record, f"hook {hook}", implementation.function)
            if answer is not None:
                answers.append((record, answer))
        return sorted(answers, key=lambda pair: pair[0].name != "core")

    def _guard(self, record: PluginRecord, doing: str, function: Callable[..., V], *arguments: Any) -> V | None:
        """Call into a plugin. Whatever it raises is recorded, and reported once."""
        try:
            return function(*arguments)
        except Exception as error:
            if self.strict or record.name == "core":
                raise
            self._failed(record, doing, error)
            return None

    def _failed(self, record: PluginRecord, doing: str, error: BaseException, *, warn: bool = True) -> None:
        record.state = PluginState.FAILED
        record.fail(doing, error)
        if warn:
            text = f"plugin {record.name!r} of {record.distribution} set aside: {record.cause}; see 'tract plugins'"
            warnings.warn(text, PluginWarning, stacklevel=2)


def _loader(entry: EntryPoint) -> Callable[[], object]:
    return entry.load


def _names(variable: str) -> list[str] | None:
    text = os.environ.get(variable)
    if text is None:
        return None
    return [] if text.strip() == "none" else [name.strip() for name in text.split(",") if name.strip()]


def _core_version() -> str:
    from tract_core.version import version

    return version()


def _api_version(plugin: object) -> tuple[int, int]:
    ask = getattr(plugin, "tract_api_version", None)
    if ask is None:
        raise PluginError("the hook 'tract_api_version' is missing", hint="return the version it was written for")
    text = str(ask())
    try:
        major, minor = text.split(".")
        return int(major), int(minor)
    except ValueError:
        raise PluginError(f"tract_api_version is {text!r}, wanted something like '1.0'") from None


def _merge_names(merged: dict[str, tuple[Any, str]], offer: Any, record: PluginRecord) -> None:
    named: dict[str, Any] = offer if isinstance(offer, Mapping) else {one.name: one for one in offer}
    for name in named:
        if name in merged:
            raise RegistrationError(f"both {merged[name][1]} and {record.distribution} offer {name!r}")
    merged.update({name: (value, record.distribution) for name, value in named.items()})
