"""``tract cook MODEL -o FILE``: simplify a model, write it, and show that what was written is as good as MODEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tract_core.cli import readings
from tract_core.cli.options import flag, range_option, tolerance_options
from tract_core.cli.writing import WritingCommand

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=WritingCommand, short_help="Simplify it, write it, and compare what was written.")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Where to write it. Default: here, as MODEL.")
@click.option("--as", "format_name", metavar="NAME", help="The format to write. Default: from the ending of FILE.")
@click.option("--no-compare", is_flag=True, help="Do not run MODEL and what was written to compare them.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@flag(
    "Values of the inputs",
    "--size",
    "sizes",
    multiple=True,
    metavar="SYM=INT",
    callback=readings.whole(readings.bindings),
    help="Compare with this size of a symbol alone.",
)
@range_option
@tolerance_options("approximate")
@click.pass_obj
def command(request: Request, **flags: Any) -> None:
    """Write MODEL to FILE, as it is after -t and --set, read it again, and compare both on random inputs.

    FILE is what loads fastest, unless its name ends otherwise: the report says what it costs.

    FILE is written only if the outputs agree within --approx, for several sizes of each symbol. The report says how
    many operators there are, how large the file is, and how long loading takes, for MODEL and for FILE.
    """
    from tract_core.cli.commands.cook_model import cook

    cook(request, flags)
