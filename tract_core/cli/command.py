"""What the subcommands have in common: how they are written in help and usage, and flags in groups."""

from __future__ import annotations

from typing import Any, Final

import click

FLAGS: Final = "Flags"
GLOBAL_USAGE: Final = "[GLOBAL FLAGS] MODEL"


class Flag(click.Option):
    """A flag. ``group``: the heading under which the help lists it."""

    def __init__(self, *args: Any, group: str = FLAGS, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


def write_flags(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter, others: str = FLAGS
) -> None:
    """The flags of a command, those of a group together, in the order in which the groups first occur.

    ``others``: the heading for those without a group.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for option in command.get_params(ctx):
        record = option.get_help_record(ctx)
        if record is not None:
            groups.setdefault(getattr(option, "group", others), []).append(record)
    for title, records in groups.items():
        with formatter.section(title):
            formatter.write_dl(records)


class ModelCommand(click.Command):
    """A subcommand that works on MODEL; its function gets the `Request` through ``click.pass_obj``."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The shape of a command line."""
        program = ctx.find_root().info_name or "tract"
        formatter.write_usage(program, f"{GLOBAL_USAGE} {ctx.info_name} [FLAGS]")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags, in groups, and where the others are."""
        write_flags(self, ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("The global flags, before the subcommand, are listed by 'tract --help'.")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the flags. A global one gets a message that says where it stands."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            root = ctx.find_root()
            if any(error.option_name in option.opts for option in root.command.get_params(root)):
                raise click.UsageError(
                    f"{error.option_name} is a global flag: it stands before '{ctx.info_name}', as in "
                    f"'tract MODEL {error.option_name} ... {ctx.info_name}'",
                    ctx,
                ) from None
            raise
