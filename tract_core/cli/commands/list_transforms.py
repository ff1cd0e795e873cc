"""``tract list-transforms``: the transforms that are installed, with their parameters."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict
from typing import Any

import click

from tract_core.cli.command import print_wrapped


@click.command(short_help="Transforms and their parameters.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(as_json: bool) -> None:
    """List what -t/--transform can apply."""
    listed = _describe_all()
    if as_json:
        click.echo(json.dumps(listed, indent=1, default=str))
        return
    for transform in listed:
        head = click.style(transform["name"], bold=True)
        print_wrapped(f"{head}  [{transform['distribution']}]  {transform['summary']}", hanging="  ")
        for parameter in transform["parameters"]:
            need = "required" if parameter["required"] else f"default {parameter['default']!r}"
            print_wrapped(f"{parameter['key']} ({need}): {parameter['doc']}", indent="    ", hanging="      ")


def _describe_all() -> list[dict[str, Any]]:
    """Every transform: name, distribution, summary, parameters. One that cannot be loaded says why in its summary."""
    from tract_core.errors import TractError
    from tract_core.plugins import default_registry
    from tract_core.plugins.parameters import parameters_of
    from tract_core.transforms.lookup import transform_class

    registry = default_registry()
    listed: list[dict[str, Any]] = []
    for name in registry.transforms():
        entry = {"name": name, "distribution": registry.owner("tract_transforms", name)}
        try:
            found = transform_class(name, registry)
            summary = (inspect.getdoc(found) or "").split("\n")[0]
            listed.append({**entry, "summary": summary, "parameters": [asdict(one) for one in parameters_of(found)]})
        except TractError as error:
            listed.append({**entry, "summary": f"cannot be loaded: {error.problem}", "parameters": []})
    return listed
