"""``tract serve PATH --explain``: what would be served, and how."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import click

from tract_core.errors import TractError
from tract_serve.kinds import made
from tract_serve.models.protocol import ServedModel
from tract_serve.models.served import Served
from tract_serve.repository.layout import FoundModel, found_in
from tract_serve.settings import Settings


def print_explanation(source: Path, settings: Settings, *, as_json: bool) -> None:
    """Load each model as the server does, and print what it is. Raises TractError where there is none."""
    models = [told for found in found_in(source, settings).values() for told in _explained(found, settings)]
    if as_json:
        click.echo(json.dumps({"models": models, "limits": asdict(settings.limits)}))
        return
    for one in models:
        _print_model(one)
    click.echo("limits: " + ", ".join(f"{name}={value}" for name, value in asdict(settings.limits).items()))


def _explained(found: FoundModel, settings: Settings) -> list[dict[str, Any]]:
    """What there is to know of each version of a model."""
    if found.problem is not None:
        return [{"name": found.name, "path": str(found.folder), "error": str(found.problem)}]
    told: list[dict[str, Any]] = []
    for version, path in found.versions.items():
        one: dict[str, Any] = {"name": found.name, "version": version, "path": str(path)}
        try:
            one |= _of_model(made(found.name, str(version), path, found.config, settings))
        except TractError as error:
            one["error"] = str(error)
        told.append(one)
    return told


def _of_model(model: ServedModel) -> dict[str, Any]:
    told = dict(model.told())
    if isinstance(model, Served):
        waiting = model.config.waiting(model.found.rows)
        told["inputs"] = {port.name: port.fact for port in model.signature.inputs}
        told["outputs"] = {port.name: port.fact for port in model.signature.outputs}
        told["threads"] = model.recipe.threads or "as many as the runtime takes"
        told["run"] = f"at most {waiting.most_rows} rows, {waiting.instances} at a time"
        told["computed"] = model.runnable.explain().summary()
    return told


def _print_model(told: dict[str, Any]) -> None:
    click.secho(f"{told['name']} {told.get('version', '')}", bold=True)
    for name, value in told.items():
        if name in ("name", "version"):
            continue
        if isinstance(value, dict):
            click.echo(f"  {name}:")
            for one, fact in cast("dict[str, str]", value).items():
                click.echo(f"    {one}  {fact}")
        else:
            click.echo(f"  {name}: {value}")
