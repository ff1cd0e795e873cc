"""``tract inferers``: the subcommands about policies for many agents."""

from __future__ import annotations

import click

from tract_inferers.cli import api, benchmark, describe, package, run, to_nnef


@click.group(invoke_without_command=True, short_help="Policies for many agents: show, package, run, measure them.")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Work on policies for many agents: models of any installed format, whose inputs have an axis of agents."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _name, _one in {
    "api": api.command,
    "describe": describe.command,
    "package": package.command,
    "to-nnef": to_nnef.command,
    "benchmark": benchmark.command,
    "run": run.command,
}.items():
    command.add_command(_one, _name)
