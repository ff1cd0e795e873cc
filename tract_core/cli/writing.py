"""What the subcommands that write models have in common: the flags of the writers that are installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.brought import BroughtFlag, with_free_names
from tract_core.cli.command import ModelCommand
from tract_core.cli.formats import FormatFlag, as_flag, given_among, keywords_for, writer_flags
from tract_core.errors import InputError
from tract_core.plugins import default_registry

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.descriptor import Export, Format

STANDARD_OUTPUT: Final = "-"


class WritingCommand(ModelCommand):
    """The flags of all writers are its own."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own flags, then those of the formats."""
        own = super().get_params(ctx)
        return [*own, *with_free_names(writer_flags(), own)]


class ExportFlag(BroughtFlag):
    """A flag of something that a format can be asked to write, as ``--nnef-tar FILE``."""

    def __init__(self, form: Format, ending: str, export: Export) -> None:
        name = f"{form.name}_{ending}" if ending else form.name
        names = [as_flag(name), f"export_{name}"]
        super().__init__(
            names,
            hook="tract_formats",
            offer=form.name,
            group=f"Writing {form.name} files",
            metavar=export.metavar,
            help=export.help,
        )
        self.form = form
        self.export = export


class ExportingCommand(WritingCommand):
    """The flags of all that formats can be asked to write are its own too."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own flags, then those of the formats, what they write first."""
        own = ModelCommand.get_params(self, ctx)
        forms = default_registry().formats().values()
        exports = [ExportFlag(form, ending, one) for form in forms for ending, one in form.exports.items()]
        return [*own, *with_free_names([*exports, *writer_flags()], own)]


def writer_keywords(request: Request, form: Format, flags: Mapping[str, Any]) -> dict[str, Any]:
    """What the flags say to the writer of a format. Raises InputError for flags of another one."""
    brought = [one for one in _params() if isinstance(one, FormatFlag)]
    return {**request.settings_of(form.name), **keywords_for(form.name, given_among(brought, flags))}


def exports(flags: Mapping[str, Any]) -> Mapping[ExportFlag, str]:
    """What the flags ask to be written, each with where to. Raises InputError for flags about what is not written."""
    wanted = given_among([one for one in _params() if isinstance(one, ExportFlag)], flags)
    written = {flag.form.name for flag in wanted}
    for flag in given_among([one for one in _params() if isinstance(one, FormatFlag)], flags):
        if flag.format_name not in written:
            raise InputError(
                f"{flag.opts[0]} says how {flag.format_name} is written, which is not asked for",
                hint=f"say where to, as in '{as_flag(flag.format_name)} FILE'",
            )
    return wanted


def write_exports(request: Request, model: TypedModel, flags: Mapping[str, Any]) -> None:
    """Write all that the flags ask for. Raises InputError, Unsupported."""
    from tract_core.api.formats import made, write_with

    with request.progress("writing"):
        for flag, path in exports(flags).items():
            keywords = {**writer_keywords(request, flag.form, _only(flag.form, flags)), **flag.export.keywords}
            known = (*flag.form.writer_keywords, *flag.export.keywords)
            writer = made(model.registry, flag.form.name, "writer", known, keywords)
            if path != STANDARD_OUTPUT:
                write_with(writer, flag.form, model, Path(path))
            elif hasattr(writer, "text"):
                click.echo(writer.text(model), nl=False)
            else:
                raise InputError(f"{flag.opts[0]} writes no text for standard output", hint="name a file")


def _only(form: Format, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags without those about other formats."""
    others = {one.name for one in _params() if isinstance(one, FormatFlag) and one.format_name != form.name}
    return {name: value for name, value in flags.items() if name not in others}


def _params() -> Sequence[click.Parameter]:
    """The flags of the subcommand that runs."""
    ctx = click.get_current_context()
    return ctx.command.get_params(ctx)
