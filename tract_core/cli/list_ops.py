"""``tract list-ops``: the operators that are known, and which questions about each have an answer."""

from __future__ import annotations

import json

import click


@click.command(short_help="Operators, by format and in the core.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> None:
    """List the core's operators, and what each installed format can load."""
    from tract_core.plugins import default_registry
    from tract_core.plugins.keys import AXES, COST, REFERENCE, STATE
    from tract_core.plugins.tables import TableKey

    registry = default_registry()
    rows = [registry[REFERENCE].rows(), registry[STATE].rows(), registry[COST].rows(), registry[AXES].rows()]
    names = sorted({key.rpartition(":")[2] for table in rows for key in table})
    listing = {"core": names}
    for name in registry.frontends():
        table: TableKey[str, object] = TableKey(name, f"how {name} operators are wired")
        listing[name] = sorted({key.removeprefix("/") for key in registry[table].rows()})
    if as_json:
        click.echo(json.dumps(listing, indent=1))
        return
    for title, operators in listing.items():
        click.secho(f"{title} ({len(operators)})", bold=True)
        click.echo(click.wrap_text(" ".join(operators), width=100, initial_indent="  ", subsequent_indent="  "))
