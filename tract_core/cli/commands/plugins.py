"""``tract plugins``: what is installed, how it is doing, and what to do about what fails."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from tract_core.cli.printing.console import Console
    from tract_core.cli.printing.printed import PrintedTable
    from tract_core.plugins import PluginRecord, Registry

_STYLE = {"available": "cyan", "loaded": "green", "failed": "red", "blocked": "dim", "incompatible": "yellow"}


HELP: Final = """\
List the installed plugins: distribution, version, state, hooks, and the cause of every failure.

\b
available     installed, nothing of it was needed yet
loaded        in use
failed        something of it failed, told below the table; the rest works
blocked       left out by TRACT_PLUGINS or TRACT_PLUGINS_BLOCK
incompatible  made for another version of tract-core
"""


@click.command(short_help="Installed plugins, and how they are doing.", help=HELP)
@click.option("--check", is_flag=True, help="Load all that they offer; exit status 1 when anything fails.")
@click.option("-v", "--verbose", is_flag=True, help="Show the tracebacks of failures.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(check: bool, verbose: bool, as_json: bool) -> None:
    """The subcommand."""
    import warnings

    from tract_core.plugins import PluginWarning, default_registry
    from tract_core.testing.checkup import check_up

    registry = default_registry()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # the listing says the same, and more
        records = check_up(registry) if check else registry.ask_everything()
        if check:
            _look_at_flags(click.get_current_context())
        unusable = _unusable_runtimes(registry) if check else {}
    if as_json:
        click.echo(json.dumps([_as_json(record, registry, unusable) for record in records], indent=1))
    else:
        _print(records, unusable, verbose)
    if check and any(record.failures for record in records):
        click.get_current_context().exit(1)


def _look_at_flags(ctx: click.Context) -> None:
    """Put the flags of all subcommands together, where those whose names are taken are refused."""
    root = ctx.find_root()
    if isinstance(root.command, click.Group):
        for name in root.command.list_commands(root):
            found = root.command.get_command(root, name)
            if found is not None:
                found.get_params(click.Context(found, parent=root))


def _unusable_runtimes(registry: Registry) -> dict[str, str]:
    """Why runtimes do not work on this machine, by name. That is no failure of their plugin, unless asking is one."""
    from tract_core.api.runtime import runtime_for_name
    from tract_core.errors import TractError

    reasons: dict[str, str] = {}
    for name in registry.runtimes():
        try:
            runtime_for_name(name, registry)
        except TractError as error:
            reasons[name] = error.problem
    return reasons


def _as_json(record: PluginRecord, registry: Registry, unusable: dict[str, str]) -> dict[str, Any]:
    mine = {name: why for name, why in unusable.items() if registry.plugin_behind("tract_runtimes", name) is record}
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "module": record.target,
        "state": record.state.value,
        "hooks": list(record.hooks),
        "failures": [
            {"doing": one.doing, "problem": one.problem, "fix": one.fix, "traceback": one.trace}
            for one in record.failures
        ],
        "remarks": record.remarks,
        "unusable_runtimes": mine,
    }


def _print(records: Iterable[PluginRecord], unusable: dict[str, str], verbose: bool) -> None:
    from tract_core.cli.printing.console import make_console

    console = make_console()
    console.table(_table(records))
    for record in records:
        _print_failures(console, record, verbose)
    for name, reason in unusable.items():
        console.line((f"\nruntime {name!r}: {reason}", "yellow"))


def _table(records: Iterable[PluginRecord]) -> PrintedTable:
    from tract_core.cli.printing.printed import Column, PrintedTable

    titles = ("plugin", "distribution", "version", "state")
    table = PrintedTable((*(Column(title, whole=True) for title in titles), Column("hooks")))
    for record in records:
        hooks = ", ".join(hook.removeprefix("tract_") for hook in record.hooks if hook != "tract_api_version")
        state = record.state.value
        table.add(record.name, record.distribution, record.version or "?", (state, _STYLE[state]), hooks or "-")
    return table


def _print_failures(console: Console, record: PluginRecord, verbose: bool) -> None:
    for remark in record.remarks:
        console.line(f"\n{record.name} ({record.distribution} {record.version}): {remark}")
    for failure in record.failures:
        console.line((f"\n{record.name} ({record.distribution} {record.version}): {failure.doing}", "red"))
        console.line(f"  cause: {failure.problem}")
        console.line(f"  what to do: {failure.fix}")
        if verbose:
            console.line((failure.trace, "dim"))
