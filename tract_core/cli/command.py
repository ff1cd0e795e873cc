"""What the subcommands have in common: how they are written in help and usage, and flags in groups."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Final

import click

FLAGS: Final = "Flags"
WIDTH: Final = 80
"""Characters in a line of text where no terminal says otherwise."""
GLOBAL_USAGE: Final = "[GLOBAL FLAGS] MODEL"


class Flag(click.Option):
    """A flag. ``group``: the heading under which the help lists it.

    ``alone``: the value where none is given, before another flag and at the end, if it may be left out.
    """

    def __init__(self, *args: Any, group: str = FLAGS, alone: str = "", **attributes: Any) -> None:
        if alone:
            attributes |= {"is_flag": False, "flag_value": alone}
        super().__init__(*args, **attributes)
        self.group, self.alone = group, alone


def write_flags(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter, others: str = FLAGS
) -> None:
    """The flags of a command, those of a group together, in the order in which the groups first occur.

    ``others``: the heading for those without a group.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for option in command.get_params(ctx):
        record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
        if record is not None:
            groups.setdefault(getattr(option, "group", others), []).append(record)
    for title, records in groups.items():
        with formatter.section(title):
            formatter.write_dl(records)


def print_wrapped(text: str, *, indent: str = "", hanging: str = "") -> None:
    """A paragraph on standard output, as wide as the terminal. ``hanging`` begins the lines after the first."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    click.echo(click.wrap_text(text, width=width, initial_indent=indent, subsequent_indent=hanging))


def a_file_too_much(path: str) -> str:
    """What to say of a file that stands where none is taken."""
    return f"a second file, {path!r}: values of an input are given with --input NAME=FILE.npy"


class ModelCommand(click.Command):
    """A subcommand that works on MODEL; its function gets the `Request` through ``click.pass_obj``."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The shape of a command line."""
        program = ctx.find_root().info_name or "tract"
        arguments = [one.make_metavar(ctx) for one in self.get_params(ctx) if isinstance(one, click.Argument)]
        formatter.write_usage(program, " ".join([f"{GLOBAL_USAGE} {ctx.info_name} [FLAGS]", *arguments]))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The flags. A word too much that is a file is told as what it may have been meant for."""
        files = [word for word in args if os.path.isfile(word)]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if files and error.message.startswith("Got unexpected extra argument"):
                raise click.UsageError(a_file_too_much(files[0]), ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags, in groups, and where the others are."""
        write_flags(self, ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("The global flags are listed by 'tract --help'.")

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own flags; in completion, the global ones too, which may stand among them."""
        own = super().get_params(ctx)
        root = ctx.find_root()
        if not ctx.resilient_parsing or root is ctx:
            return own
        taken = {name for option in own for name in option.opts}
        return [*own, *(one for one in root.command.get_params(root) if not taken & {*one.opts})]
