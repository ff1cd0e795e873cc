"""``tract MODEL save FILE``: write the model, as it is at the stage of ``--pass``, in a format that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.brought import with_free_names
from tract_core.cli.command import ModelCommand
from tract_core.cli.formats import FormatFlag, given_among, keywords_for, writer_flags
from tract_core.cli.options import NEW_FILE
from tract_core.plugins import default_registry

if TYPE_CHECKING:
    from tract_core.cli.request import Request


class SaveCommand(ModelCommand):
    """The flags of all writers are its own."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own flags, then those of the formats."""
        own = super().get_params(ctx)
        return [*own, *with_free_names(writer_flags(), own)]


@click.command(cls=SaveCommand, short_help="Write it to a file, in an installed format.")
@click.argument("file", type=NEW_FILE)
@click.option("--as", "format_name", metavar="NAME", help="The format to write. Default: from the ending of FILE.")
@click.pass_context
def command(ctx: click.Context, /, file: str, format_name: str | None, **flags: Any) -> None:
    """Write MODEL to FILE, as it is at the stage of --pass (default: after everything that changes it)."""
    from tract_core.api.formats import format_to_write, write_as

    brought = [one for one in ctx.command.get_params(ctx) if isinstance(one, FormatFlag)]
    path = Path(file)
    form = format_to_write(path, default_registry().formats(), format_name)
    given = keywords_for(form.name, given_among(brought, flags))
    request: Request = ctx.obj
    model = request.typed_model()
    with request.progress("writing"):
        write_as(form, model, path, **given)
