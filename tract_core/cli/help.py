"""``tract help [SUBCOMMAND]``: the same as ``--help``, for those who look for it under that name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tract_core.cli.line import no_such_command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _subcommands(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tract_core.cli.completion import starting

    root = ctx.find_root()
    return starting(incomplete, _names(root))


def _names(root: click.Context) -> list[str]:
    return root.command.list_commands(root) if isinstance(root.command, click.Group) else []


@click.command(short_help="This help, or that of a subcommand.")
@click.argument("subcommand", required=False, shell_complete=_subcommands)
@click.pass_context
def command(ctx: click.Context, subcommand: str | None) -> None:
    """Show how to write a command line, or the flags of SUBCOMMAND."""
    root = ctx.find_root()
    if subcommand is None:
        click.echo(root.get_help())
        return
    found = root.command.get_command(root, subcommand) if isinstance(root.command, click.Group) else None
    if found is None:
        raise click.UsageError(no_such_command(subcommand, _names(root)), root)
    click.echo(found.get_help(click.Context(found, info_name=subcommand, parent=root)))
