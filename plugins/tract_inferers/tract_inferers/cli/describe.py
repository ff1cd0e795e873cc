"""``tract inferers describe FILE``: what kind of file a policy is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tract_inferers.cli.options import file_argument

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(short_help="What kind of file it is.")
@file_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(request: Request, file: str, as_json: bool) -> None:
    """Say in a line what FILE is: an asset and the kind of model in it, or a model of another format.

    The model is not loaded.
    """
    from tract_core.api.display import size

    found = _described(file)
    if as_json:
        click.echo(json.dumps(found))
        return
    what = "an asset, which holds a model" if found["asset"] else "a model"
    request.console.line((file, "bold"), f": {what} of kind {found['kind']}, {size(found['bytes'])}")


def _described(file: str) -> dict[str, Any]:
    """Whether it is an asset, the kind of model, and how many bytes it takes."""
    from tract_core.api.formats import find_format
    from tract_core.api.given import checked_path
    from tract_inferers.assets.asset import AssetData

    form, path = find_format(checked_path(file))
    if form == "crvo":
        asset = AssetData.load(path)
        return {"file": file, "asset": True, "kind": str(asset.kind), "bytes": len(asset.data)}
    files = path.rglob("*") if path.is_dir() else [path]
    return {"file": file, "asset": False, "kind": form, "bytes": sum(one.stat().st_size for one in files)}
