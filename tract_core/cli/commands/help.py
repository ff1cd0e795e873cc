"""``tract help [SUBCOMMAND]``: the same as ``--help``, for those who look for it under that name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tract_core.cli.line import no_such_command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _subcommands(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tract_core.cli.completion import starting

    return starting(incomplete, _names(ctx.find_root()))


def _names(ctx: click.Context) -> list[str]:
    return ctx.command.list_commands(ctx) if isinstance(ctx.command, click.Group) else []


@click.command(short_help="This help, or that of a subcommand.")
@click.argument("subcommand", nargs=-1, shell_complete=_subcommands)
@click.pass_context
def command(ctx: click.Context, subcommand: tuple[str, ...]) -> None:
    """Show how to write a command line, or the flags of SUBCOMMAND."""
    of = root = ctx.find_root()
    for word in subcommand:
        group = of.command
        found = group.get_command(of, word) if isinstance(group, click.Group) else None
        if found is None:
            raise click.UsageError(no_such_command(word, _names(of)), root)
        of = click.Context(found, info_name=word, parent=of)
    click.echo(of.get_help())
