"""The registry: which plugins are installed, and the tables that they fill.

Plugins are looked up at the first question, and each is asked apart from the others. One that fails, at whatever
moment, is recorded with the cause, reported once as a warning, and disturbs nobody. Where plugins come from is decided
in `discovery`, what their hooks may return in `offers`.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, Final, TypeVar, cast

import pluggy

from tract_core.errors import LimitExceeded, PluginError, RegistrationError, RunError, TractError
from tract_core.importing import imported
from tract_core.limits import TOO_LARGE_HINT
from tract_core.plugins import builtin, hookspecs
from tract_core.plugins.claims import Brought, Offers, take_offers, take_rows
from tract_core.plugins.descriptor import CORE_PLUGIN, Format, PluginRecord, PluginState, RuntimeOffer, Stage
from tract_core.plugins.discovery import installed_plugins, normal_name
from tract_core.plugins.distributions import CORE
from tract_core.plugins.handshake import check_hooks, refusal
from tract_core.plugins.offers import CHECKS, Listed, Offer, parts_of, what_is_wrong
from tract_core.plugins.references import load_object
from tract_core.plugins.tables import DeferredRow, Row, Rows, Table, TableKey, key_text
from tract_core.version import version

K = TypeVar("K")
V = TypeVar("V")

_ROWS = "tract_rows"
_NAME_HOOKS = ("tract_tables", "tract_formats", "tract_transforms", "tract_stages", "tract_runtimes", "tract_commands")


_FORGIVING: ContextVar[bool] = ContextVar("_FORGIVING", default=True)


ASKING: Final = threading.RLock()
"""Held while plugins are asked. A fork waits until that is done: the child has no thread that would finish it."""

if sys.platform != "win32":  # which does not fork
    os.register_at_fork(before=ASKING.acquire, after_in_child=ASKING.release, after_in_parent=ASKING.release)


class PluginWarning(UserWarning):
    """Something of a plugin failed and was set aside."""


class Registry:
    """Plugins and tables. `tract_core.plugins.default_registry` is that of the installed plugins; tests make their own.

    ``plugins``: modules (or objects) with hook implementations, by name, beside the installed ones. ``discover``: look
    for installed plugins. ``only``, ``block``: installed plugins to keep or to leave out, by name or by distribution
    (default: the variables ``TRACT_PLUGINS``, where ``none`` keeps none, and ``TRACT_PLUGINS_BLOCK``,
    comma-separated). ``strict``: raise what a plugin raises instead of recording it.
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
        self._given = dict(plugins or {})
        self._discover = discover
        self._only = _names("TRACT_PLUGINS") if only is None else _normal(only)
        self._block = _names("TRACT_PLUGINS_BLOCK") or set() if block is None else _normal(block)
        self._records: dict[str, PluginRecord] = {}
        self._managers: dict[str, pluggy.PluginManager] = {}
        self._answers: dict[str, list[tuple[PluginRecord, Offer]]] = {}
        self._names: dict[str, Offers] = {}
        self._rows: dict[tuple[str, str], Rows | None] = {}
        self._tables: dict[str, Table[Any, Any]] = {}
        self._unreported: list[str] = []
        self._busy: set[str] = set()
        self._found = False

    def __getitem__(self, key: TableKey[K, V]) -> Table[K, V]:
        """The table of that key, filled from every plugin at the first question."""
        try:
            return self._tables[key.name]
        except KeyError:
            with self._asking():
                table = self._tables.get(key.name)
                if table is None:
                    table = self._fill(key)
            return cast("Table[K, V]", table)

    def _fill(self, key: TableKey[K, V]) -> Table[K, V]:
        rival = None if key.rival is None else self[key.rival]
        table: Table[K, V] = Table(key, rival, self._overruled, self._keep)
        self._take(table)
        self._tables[key.name] = table
        return table

    def _take(self, table: Table[Any, Any]) -> None:
        """Fill a table with the rows of all modules that are listed for it."""
        name = table.key.name
        with self._once(f"table {name!r}"):
            brought = [self._brought(table, record, listed) for record, listed in self._listed_for(name).values()]
            owner = self._offers("tract_tables").get(name)
            filled: Table[Any, Any] = Table(table.key)
            for one, error in take_rows(filled, filter(None, brought), owner and owner[1]):
                self._guard(one.record, f"rows in {one.module}", _raise, error)
            table.hold(filled)

    def _brought(self, table: Table[Any, Any], record: PluginRecord, listed: Listed) -> Brought | None:
        """The rows of a module for a table: promises, where an index names them and the module was not imported yet.

        ``None`` when the module cannot be imported, or one of its rows does not fit.
        """
        name, module = table.key.name, listed.module
        if listed.keys is not None and (record.name, module) not in self._rows:
            promised = [Row(name, key, DeferredRow(record.name, module, types)) for key, types in listed.keys.items()]
            return Brought(record, module, promised)
        rows = self._rows_of(record, module)
        if rows is None:
            return None
        brought = Brought(record, module, [row for row in rows if row.table == name])
        return self._guard(record, f"rows in {module}", _checked, table, brought, listed.keys)

    def _keep(self, table: Table[Any, Any], promise: DeferredRow) -> None:
        """Import the module that a promise of a table leads to. One that fails goes, with all that it promised."""
        with self._asking():
            record, listed = self._listed_for(table.key.name)[promise.plugin, promise.module]
            self._rows_of(record, listed.module)
            brought = self._brought(table, record, listed)
            if brought is None:
                self._take(table)
            else:
                table.keep(record.name, listed.module, brought.rows)

    def _overruled(self, plugin: str, error: RegistrationError) -> None:
        """Record that a row is not used, as somebody else answers the question for that operator already."""
        with self._asking():
            self._guard(self._records[plugin], "rows", _raise, error)

    def _listed_for(self, table: str) -> Mapping[tuple[str, str], tuple[PluginRecord, Listed]]:
        """The modules that are listed for a table, in order, by the names of plugin and module."""
        offers = [(record, offer.get(table, ())) for record, offer in self._ask(_ROWS)]
        return {(record.name, one.module): (record, one) for record, listed in offers for one in listed}

    def _rows_of(self, record: PluginRecord, module: str) -> Rows | None:
        """The rows of one module of a plugin, which is imported once; ``None`` when it failed."""
        place = (record.name, module)
        if place not in self._rows:
            with self._once(f"list of rows in {module}"):
                self._rows[place] = self._guard(record, f"import of {module}", _load_rows, module)
            if self._rows[place] is not None:
                record.used()
        return self._rows[place]

    def answer(self, key: TableKey[type, Callable[..., V]], op: object, *arguments: Any) -> V | None:
        """What the row for an operator says of these arguments; ``None`` when there is none.

        A row of a plugin that raises, or returns what its table does not take, is left out from then on.
        """
        row = self[key].find(type(op))
        if row is None:
            return None
        try:
            found = row(op, *arguments)
            wrong = key.answer(found, *arguments)
            if wrong is not None:
                raise PluginError(f"what it returned is wrong: {wrong}")
        except (LimitExceeded, MemoryError):
            raise
        except Exception as error:
            if not self.set_aside(key, type(op), f"row of {key.name!r} for", error):
                raise
            self[key].set_aside(type(op))
            return None
        return found

    def formats(self) -> Mapping[str, Format]:
        """The model formats, by name."""
        return self._named("tract_formats")

    def stages(self) -> Mapping[str, Stage]:
        """The stages of the command that plugins add, by name."""
        return self._named("tract_stages")

    def transforms(self) -> Mapping[str, str]:
        """Where the transforms are, by name."""
        return self._named("tract_transforms")

    def runtimes(self) -> Mapping[str, RuntimeOffer]:
        """The runtimes, by name."""
        return self._named("tract_runtimes")

    def commands(self) -> Mapping[str, str]:
        """Where the subcommands of ``tract`` are, by name."""
        return self._named("tract_commands")

    def owner(self, hook: str, name: str) -> str | None:
        """The distribution behind a named offer of a hook."""
        record = self.plugin_behind(hook, name)
        return None if record is None else record.distribution

    def plugin_behind(self, hook: str, name: str) -> PluginRecord | None:
        """The plugin behind a named offer of a hook."""
        found = self._offered(hook).get(name)
        return found[1] if found else None

    def load(self, hook: str, name: str, part: str = "") -> Any:
        """Import what a named offer leads to. Raises PluginError, naming the distribution and the cause.

        ``part``: of an offer that leads to several, as ``"loader"`` or ``"writer"`` of a format.
        """
        offered = self._offered(hook)
        if name not in offered:
            known = ", ".join(sorted(offered)) or "none"
            raise PluginError(f"no plugin offers {name!r} to {hook}; there are: {known}")
        offer, record = offered[name]
        reference = parts_of(offer)[part]
        try:
            loaded = load_object(reference)
            wrong = what_is_wrong(hook, part, name, loaded)
            if wrong is not None:
                raise PluginError(f"{reference!r} does not lead to what {hook} wants: {wrong}")
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            hint = "'tract plugins --check --verbose' shows why"
            raise _blame(record, f"load {_kind(hook)} {name!r}", error, hint) from error
        record.used()
        return loaded

    @contextmanager
    def blaming(self, hook: str, name: str, doing: str) -> Generator[None, None, None]:
        """Around a call into what a named offer led to: ``with registry.blaming("tract_runtimes", "toy", "prepare")``.

        A TractError is an answer to the caller and passes. Where there is not enough memory for what a model needs,
        that is a RunError of a runtime, and LimitExceeded otherwise. Anything else is recorded as the plugin's failure,
        and raised as a PluginError that names the distribution.
        """
        found = self._offered(hook).get(name)
        try:
            yield
        except (TractError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if isinstance(error, MemoryError) and doing != "set-up":  # which no model has a part in
                kind = RunError if hook == "tract_runtimes" and doing != "prepare" else LimitExceeded
                problem = f"there is not enough memory for the {doing} of {_kind(hook)} {name!r}: {error}"
                raise kind(problem, hint=TOO_LARGE_HINT) from error
            if found is None or found[1].name == CORE_PLUGIN:
                raise
            hint = f"this is a defect of {found[1].distribution}; its authors want the traceback, which --debug shows"
            raise _blame(found[1], f"{doing} of {_kind(hook)} {name!r}", error, hint) from error

    def _named(self, hook: str) -> dict[str, Any]:
        return {name: offer for name, (offer, _) in self._offered(hook).items()}

    def _offered(self, hook: str) -> Offers:
        if hook not in self._names:
            with self._asking():
                self._offers(hook)
        return self._names[hook]

    def _offers(self, hook: str) -> Offers:
        """As `_offered`; the lock is held."""
        if hook not in self._names:
            taken, refused = take_offers(hook, self._ask(hook))
            for record, error in refused:
                self._guard(record, f"hook {hook}", _raise, error)
            self._names[hook] = taken
        return self._names[hook]

    def plugins(self) -> list[PluginRecord]:
        """Every installed plugin, the core first, with its state. Only the plugin modules themselves are imported."""
        with self._asking():
            self._find()
        return list(self._records.values())

    def ask_everything(self) -> list[PluginRecord]:
        """Ask every hook of every plugin, so that failures show; like `plugins`, it imports only the plugin modules."""
        with self._asking():
            self._ask(_ROWS)
            for hook in _NAME_HOOKS:
                self._offered(hook)
        return self.plugins()

    def load_everything(self) -> list[PluginRecord]:
        """Import all that plugins offer, so that failures show. Rows of tables that nobody asks are left waiting."""
        self.ask_everything()
        for hook in _NAME_HOOKS:
            for name, part in [(name, part) for name, offer in self._named(hook).items() for part in parts_of(offer)]:
                try:
                    loaded = self.load(hook, name, part)
                except PluginError:
                    continue  # the plugin's record holds the cause
                if isinstance(loaded, TableKey):
                    self[cast("TableKey[Any, Any]", loaded)].rows()
        return self.plugins()

    def tables(self) -> list[str]:
        """The names of the tables that installed plugins ask."""
        return list(self._offered("tract_tables"))

    def listed_modules(self, record: PluginRecord) -> Mapping[str, tuple[str, ...]]:
        """What a plugin lists as modules of rows, by table."""
        answers = [offer for one, offer in self._ask(_ROWS) if one is record]
        return {table: tuple(one.module for one in listed) for offer in answers for table, listed in offer.items()}

    def loaded_rows(self, record: PluginRecord, module: str) -> Rows | None:
        """The rows of a plugin's module, if it has been imported, and could be."""
        return self._rows.get((record.name, module))

    def home_of(self, thing: type | FunctionType) -> str:
        """The distribution that a class or a function is from; the module, where that is of no plugin."""
        package = thing.__module__.partition(".")[0]
        records = [one for one in self.plugins() if one.target.partition(".")[0] == package]
        return records[0].distribution if records else f"module {thing.__module__}"

    def _find(self) -> None:
        """Look plugins up, once; the lock is held."""
        if self._found:
            return
        with self._once("list of plugins"):
            self._records.clear()
            self._managers.clear()
            self._admit(PluginRecord(CORE_PLUGIN, CORE, version(), builtin.__name__), lambda: builtin)
            for name, plugin in self._given.items():
                target = getattr(plugin, "__name__", type(plugin).__name__)
                self._admit(PluginRecord(name, name, "", target), lambda plugin=plugin: plugin)
            for found in installed_plugins() if self._discover else ():
                self._admit(found.record, found.load, found.error, installed=True)
        self._found = True

    def _admit(
        self,
        record: PluginRecord,
        load: Callable[[], object],
        error: Exception | None = None,
        *,
        installed: bool = False,
    ) -> None:
        blocked = installed and not self._wanted(record)
        first = self._records.get(record.name)
        if first is not None:
            problem = f"{first.distribution} and {record.distribution} both have a plugin named {record.name!r}"
            error = RegistrationError(problem, hint=f"uninstall one of them; that of {first.distribution} is used")
            record.name = f"{record.name} ({record.distribution})"
        self._records[record.name] = record
        if blocked:
            record.state = PluginState.BLOCKED
        elif error is not None:
            self._guard(record, "discovery", _raise, error)
        else:
            self._guard(record, f"import of {record.target}", self._register, record, load)

    def _wanted(self, record: PluginRecord) -> bool:
        names = _normal((record.name, record.distribution))
        return not names & self._block and (self._only is None or bool(names & self._only))

    def _register(self, record: PluginRecord, load: Callable[[], object]) -> None:
        """Import a plugin, shake hands, and check its hooks against the specifications."""
        plugin = load()
        misfit = refusal(plugin, record)
        if misfit is not None:
            record.state = PluginState.INCOMPATIBLE
            raise misfit
        check_hooks(plugin)
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        manager.register(plugin, record.name)
        hooks = manager.get_hookcallers(plugin) or []
        record.hooks = tuple(sorted(hook.name for hook in hooks))
        self._managers[record.name] = manager

    def _ask(self, hook: str) -> list[tuple[PluginRecord, Offer]]:
        """What every plugin answers to a hook, the core first; one that fails is recorded and left out."""
        self._find()
        if hook not in self._answers:
            asked = [(self._records[name], manager) for name, manager in self._managers.items()]
            answers = [(record, self._guard(record, f"hook {hook}", _call, manager, hook)) for record, manager in asked]
            self._answers[hook] = [(record, offer) for record, offer in answers if offer]
        return self._answers[hook]

    def _guard(self, record: PluginRecord, doing: str, function: Callable[..., V], *arguments: Any) -> V | None:
        """Call into a plugin. Whatever it raises is recorded, and reported once."""
        try:
            return function(*arguments)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if self.strict or record.name == CORE_PLUGIN:
                raise
            self._leave_out(record, doing, error)
            return None

    def _leave_out(self, record: PluginRecord, doing: str, error: BaseException) -> None:
        if record.fail(doing, error):
            self._unreported.append(
                f"plugin {record.name!r} of {record.distribution}: {record.failures[-1]}; it is left out, "
                "'tract plugins --check' says what to do"
            )

    def set_aside(self, table: TableKey[Any, Any], key: object, doing: str, error: Exception) -> bool:
        """Record that a row of a table failed when it was used, and report it once.

        Returns whether the caller may go on without it: not for a row of the core, nor when the registry is strict, nor
        within `rows_may_raise`.
        """
        if not _FORGIVING.get():
            return False
        record = self._records.get(self[table].plugin(key) or "")
        if record is None or record.name == CORE_PLUGIN or self.strict:
            return False
        with self._asking():
            self._leave_out(record, f"{doing} {key_text(key)}", error)
        return True

    def refuse(self, hook: str, name: str, doing: str, error: RegistrationError) -> None:
        """Record that a part of what a plugin offers to a hook under a name is not used, and why; report it once."""
        record = self.plugin_behind(hook, name)
        if record is not None:
            with self._asking():
                self._guard(record, doing, _raise, error)

    @contextmanager
    def _asking(self) -> Generator[None, None, None]:
        """Hold the lock; report failures afterwards, when everything is in place, as a warning may become an error."""
        with ASKING:
            yield
        while (problem := self._next_unreported()) is not None:
            warnings.warn(problem, PluginWarning, stacklevel=4)

    def _next_unreported(self) -> str | None:
        with ASKING:
            return self._unreported.pop(0) if self._unreported else None

    @contextmanager
    def _once(self, what: str) -> Generator[None, None, None]:
        """Refuse a question that comes, from a plugin, while the answer to the same one is being put together."""
        if what in self._busy:
            raise PluginError(f"the {what} is asked for while it is being made", hint="ask no registry at import")
        self._busy.add(what)
        try:
            yield
        finally:
            self._busy.discard(what)


@contextmanager
def rows_may_raise() -> Generator[None, None, None]:
    """For tests of plugins: what a row raises passes, with the traceback, where the row would be left out."""
    token = _FORGIVING.set(False)
    try:
        yield
    finally:
        _FORGIVING.reset(token)


def _blame(record: PluginRecord, doing: str, error: BaseException, hint: str) -> PluginError:
    """Record a failure; the error for the caller that it stands behind."""
    record.fail(doing, error)
    problem = str(error) if isinstance(error, TractError) else f"{type(error).__name__}: {error}"
    return PluginError(f"{doing} of {record.distribution} failed: {problem}", hint=hint)


def _names(variable: str) -> set[str] | None:
    """The names in an environment variable; ``None`` when it is not set or empty."""
    text = os.environ.get(variable, "").strip()
    return None if not text else set() if text == "none" else _normal(text.split(","))


def _normal(names: Iterable[str]) -> set[str]:
    return {normal_name(name.strip()) for name in names if name.strip()}


def _kind(hook: str) -> str:
    """What a hook offers, in the singular: ``"runtime"`` for ``"tract_runtimes"``."""
    return hook.removeprefix("tract_").removesuffix("s")


def _load_rows(module: str) -> Rows:
    rows = getattr(imported(module), "ROWS", None)
    if not isinstance(rows, Rows):
        found = f"module {module!r} has no 'ROWS'" if rows is None else f"{module}.ROWS is a {type(rows).__name__}"
        raise RegistrationError(
            f"{found}, wanted a tract_core.plugins.Rows", hint="write ROWS = Rows() there, and add the rows to it"
        )
    return rows


def _checked(table: Table[Any, Any], brought: Brought, keys: Mapping[str, object] | None) -> Brought:
    """Raises RegistrationError when a row does not fit, or an index named others than there are."""
    table.check(brought.rows, brought.record.distribution)
    wrong = () if keys is None else keys.keys() ^ {row.key for row in brought.rows}
    if wrong:
        problem = f"table {table.key.name!r}: the index and {brought.module} differ in {', '.join(sorted(wrong))}"
        raise RegistrationError(
            problem, hint="write the index anew: python -m tract_core.plugins.write_index PLUGIN_MODULE"
        )
    return brought


def _call(manager: pluggy.PluginManager, hook: str) -> Offer:
    answers: list[object] = getattr(manager.hook, hook)()
    return CHECKS[hook](answers[0]) if answers else {}


def _raise(error: Exception) -> None:
    raise error
