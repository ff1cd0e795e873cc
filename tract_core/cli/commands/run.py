"""``tract MODEL run``: run once, print or save what comes out, and check it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.options import assertion_options, run_options, trace_option

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=ModelCommand, short_help="Run once, and check or save the outputs.")
@click.option("--dump", "show", is_flag=True, help="Print the outputs.")
@click.option("--steps", is_flag=True, help="Print what every node computes.")
@click.option(
    "--save-outputs-npz",
    "--save-outputs",
    "save",
    type=click.Path(dir_okay=False, writable=True),
    metavar="NPZ",
    help="Save the outputs, by name.",
)
@click.option("--save-steps", type=click.Path(dir_okay=False, writable=True), metavar="NPZ", help="Save every tensor.")
@trace_option
@click.option("--assert-sane-floats", is_flag=True, help="No node may give an infinity or not-a-number.")
@click.option("--json", "as_json", is_flag=True, help="Facts and values of the outputs as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing, only check and save.")
@run_options
@assertion_options
@click.pass_obj
def command(request: Request, **flags: Any) -> None:
    """Run MODEL once, on the inputs of a bundle or on random ones."""
    from tract_core.cli.commands.run_once import run_once

    run_once(request, flags)
