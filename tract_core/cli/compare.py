"""``tract MODEL compare``: node by node against another stage, another run, or arrays in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.frame import ModelCommand
from tract_core.cli.options import STAGES, assertion_options, run_options

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=ModelCommand, short_help="Compare node by node with a reference.")
@click.option(
    "--stage",
    "against",
    type=click.Choice(STAGES[3:]),
    metavar="STAGE",
    help=f"The reference is the model as it was at: {', '.join(STAGES[3:])}.",
)
@click.option("--twice", is_flag=True, help="The reference is a second run of the same model.")
@click.option(
    "--npz",
    type=click.Path(exists=True, dir_okay=False),
    metavar="NPZ",
    help="The reference is arrays, by tensor name.",
)
@click.option("--cumulative", is_flag=True, help="Let errors add up: do not give each node the reference's inputs.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what differs.")
@click.option("--json", "as_json", is_flag=True, help="The verdict on every node as JSON.")
@run_options
@assertion_options
@click.pass_obj
def command(request: Request, **flags: Any) -> None:
    """Run MODEL and a reference, and name the nodes whose outputs differ beyond --approx."""
    from tract_core.cli.compare_nodes import compare

    if sum(map(bool, (flags["against"], flags["twice"], flags["npz"]))) != 1:
        raise click.UsageError("say what to compare with: one of --stage, --twice, --npz")
    compare(request, flags)
