"""``tract MODEL save FILE``: write the model, as it is at the stage of ``--pass``, in a format that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.options import NEW_FILE
from tract_core.cli.writing import WritingCommand, writer_keywords
from tract_core.plugins import default_registry

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=WritingCommand, short_help="Write it to a file, in an installed format.")
@click.argument("file", type=NEW_FILE)
@click.option("--as", "format_name", metavar="NAME", help="The format to write. Default: from the ending of FILE.")
@click.pass_obj
def command(request: Request, /, file: str, format_name: str | None, **flags: Any) -> None:
    """Write MODEL to FILE, as it is at the stage of --pass (default: after everything that changes it)."""
    from tract_core.api.formats import format_to_write, write_as

    path = Path(file)
    form = format_to_write(path, default_registry().formats(), format_name)
    given = writer_keywords(request, form, flags)
    model = request.typed_model()
    with request.progress("writing"):
        write_as(form, model, path, **given)
