"""``tract list-runtimes``: the runtimes that are installed, and whether each works here."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from tract_core.cli.command import print_wrapped


@click.command(short_help="Runtimes, and whether they work here.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> None:
    """List the installed runtimes; the one that 'default' stands for is marked."""
    from tract_core.plugins import default_registry

    registry = default_registry()
    chosen = _chosen()
    listed: list[dict[str, Any]] = [
        {
            "name": name,
            "distribution": registry.owner("tract_runtimes", name),
            "default": name == chosen,
            "unusable": _why_unusable(name),
            "options": _options(name),
        }
        for name in registry.runtimes()
    ]
    if as_json:
        click.echo(json.dumps(listed, indent=1))
        return
    width = max(len(str(runtime["name"])) for runtime in listed)
    for runtime in listed:
        works = runtime["unusable"] is None
        state = click.style(str(runtime["unusable"] or "works here"), fg="green" if works else "yellow")
        mark = "  (default)" if runtime["default"] else ""
        click.echo(f"{runtime['name']:<{width}}  {runtime['distribution']}  {state}{mark}")
        for option in runtime["options"]:
            print_wrapped(
                f"{option['key']} (default {option['default']!r}): {option['doc']}", indent="    ", hanging="      "
            )


def _chosen() -> str | None:
    from tract_core.plugins import default_registry
    from tract_core.runtime.lookup import default_name

    return default_name(default_registry().runtimes())


def _options(name: str) -> list[dict[str, Any]]:
    """The options of a runtime: key, default, documentation; none for one that cannot be loaded."""
    from tract_core.errors import TractError
    from tract_core.plugins import default_registry
    from tract_core.plugins.parameters import parameters_of

    try:
        return [asdict(one) for one in parameters_of(default_registry().load("tract_runtimes", name))]
    except TractError:
        return []


def _why_unusable(name: str) -> str | None:
    """``None`` when the runtime works; else the reason, in one line."""
    from tract_core.api.runtime import runtime_for_name
    from tract_core.errors import TractError

    try:
        runtime_for_name(name)
    except TractError as error:
        return error.problem
    return None
