"""``tract MODEL quantize --data FOLDER -o FILE``: products of bytes, calibrated with data, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli import readings
from tract_core.cli.options import NEW_FILE, flag
from tract_core.cli.writing import WritingCommand

if TYPE_CHECKING:
    from tract_core.cli.request import Request

_DATA: Final = "What it is calibrated with"
_HOW: Final = "How it is quantised"
_REPORT: Final = "What is reported"
_METHODS: Final = ("minmax", "percentile", "entropy", "mse")


@click.command(cls=WritingCommand, short_help="Quantise it with data, write it, and say what that costs.")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Where to write it. Default: nowhere.")
@click.option("--as", "format_name", metavar="NAME", help="The format to write. Default: from the ending of FILE.")
@flag(
    _DATA,
    "--data",
    type=click.Path(),
    metavar="FOLDER",
    help="A folder of .npz files, each a turn with an array for every input; of one input, .npy files too.",
)
@flag(_DATA, "--samples", type=click.IntRange(1), metavar="N", help="Take the first N files alone.")
@flag(_DATA, "--random", type=click.IntRange(1), metavar="N", help="N random turns instead, to try things only.")
@flag(
    _DATA,
    "--set",
    "bindings",
    multiple=True,
    metavar="SYM=INT",
    callback=readings.whole(readings.bindings),
    help="Value of a symbol, for random turns. Default: 1.",
)
@flag(
    _HOW,
    "--method",
    type=click.Choice(_METHODS),
    default="minmax",
    show_default=True,
    metavar="NAME",
    help=f"How ranges are made of what occurs: {', '.join(_METHODS)}.",
)
@flag(
    _HOW,
    "--percentile",
    type=readings.NumberRange(50, 100, min_open=True),
    default=99.999,
    show_default=True,
    metavar="P",
    help="Of 'percentile': how many in a hundred elements are kept.",
)
@flag(
    _HOW,
    "--weight-bits",
    "bits",
    type=click.Choice(("7", "8")),
    default="8",
    show_default=True,
    help="7 for engines on processors without VNNI, where pairs of products overflow.",
)
@flag(_HOW, "--weights-only", type=click.Choice(("4", "8")), help="Weights alone, of so many bits, in blocks.")
@flag(_HOW, "--block", type=click.IntRange(16), default=32, show_default=True, metavar="N", help="Weights in a block.")
@flag(_HOW, "--exclude", multiple=True, metavar="NAME", help="A node that stays in floats, with * and ?. Repeat.")
@flag(
    _HOW,
    "--max-error",
    type=readings.NumberRange(0, min_open=True),
    metavar="E",
    help="Leave nodes that lose most in floats until the error of each output is at most E.",
)
@flag(
    _REPORT,
    "--by-output",
    is_flag=True,
    help="Of each node, what it alone costs the outputs, not what it loses itself: a model for each, so slower.",
)
@flag(_REPORT, "--top", type=click.IntRange(0), default=10, show_default=True, metavar="N", help="Nodes to name.")
@flag(
    _REPORT,
    "--picture",
    type=NEW_FILE,
    metavar="FILE.svg",
    help="Try all methods, and draw their errors and times.",
)
@flag(_REPORT, "--save-ranges", type=NEW_FILE, metavar="FILE", help="Write the ranges, for -t quantize_static.")
@flag(_REPORT, "--json", "as_json", is_flag=True, help="The report as JSON.")
@click.pass_obj
def command(request: Request, **flags: Any) -> None:
    """Quantise MODEL: data and weights of products to 8 bits, in the ranges that data from a folder shows.

    What is written is read again and compared before it is put in its place. Errors are norms: of the difference of an
    output from that of MODEL, over that of MODEL's.
    """
    from tract_quantize.cli.run_quantize import run

    run(request, flags)
