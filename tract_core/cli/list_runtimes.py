"""``tract list-runtimes``: the runtimes that are installed, and whether each works here."""

from __future__ import annotations

import json

import click


@click.command(short_help="Runtimes, and whether they work here.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> None:
    """List the installed runtimes; the one that 'default' stands for is marked."""
    from tract_core.plugins import default_registry

    registry = default_registry()
    chosen = _chosen()
    listed = [
        {
            "name": name,
            "distribution": registry.owner("tract_runtimes", name),
            "default": name == chosen,
            "unusable": _why_unusable(name),
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


def _chosen() -> str | None:
    from tract_core.api.runtime import runtime_for_name
    from tract_core.errors import TractError

    try:
        return runtime_for_name("default").name()
    except TractError:
        return None


def _why_unusable(name: str) -> str | None:
    """``None`` when the runtime works; else the reason, in one line."""
    from tract_core.api.runtime import runtime_for_name
    from tract_core.errors import TractError

    try:
        runtime_for_name(name)
    except TractError as error:
        return error.problem
    return None
