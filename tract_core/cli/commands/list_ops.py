"""``tract list-ops``: the operators that are known, in the core and by format."""

from __future__ import annotations

import json

import click

from tract_core.cli.command import print_wrapped


@click.command(short_help="Operators, by format and in the core.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> None:
    """List the core's operators, and what each installed format can load.

    Behind an operator of a format are the versions in which its meaning changed, where there are several.
    """
    from tract_core.cli.assertions import operators
    from tract_core.plugins import default_registry
    from tract_core.plugins.tables import TableKey

    registry = default_registry()
    listing = {"core": operators(registry)}
    for name in registry.formats():
        table: TableKey[str, object] = TableKey(name, f"how {name} operators are wired")
        listing[name] = sorted({key.removeprefix("/") for key in registry[table].names()})
    if as_json:
        click.echo(json.dumps(listing, indent=1))
        return
    for title, found in listing.items():
        click.secho(f"{title} ({len(found)})", bold=True)
        for group, names in _grouped(found).items():
            print_wrapped(" ".join(names), indent=f"  {group}: " if group else "  ", hanging="  ")


def _grouped(operators: list[str]) -> dict[str, list[str]]:
    """By domain, where keys are ``domain/Op/version``: ``{"ai.onnx": ["Abs", "Softmax(1,13)"]}``; one group else."""
    versions: dict[str, dict[str, list[int]]] = {}
    for key in operators:
        domain, _, rest = key.rpartition("/")[0].partition("/") if key.count("/") > 1 else ("", "", key)
        found = versions.setdefault(domain, {}).setdefault(rest, [])
        if domain:
            found.append(int(key.rpartition("/")[2]))
    return {
        domain: [f"{op}({','.join(map(str, sorted(since)))})" if len(since) > 1 else op for op, since in ops.items()]
        for domain, ops in versions.items()
    }
