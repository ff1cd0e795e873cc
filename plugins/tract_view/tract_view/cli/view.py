"""``tract MODEL view``: a page that shows the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.options import NEW_FILE, bench_options, run_options

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=ModelCommand, short_help="Show the model in a browser.")
@click.option("--html", type=NEW_FILE, metavar="FILE", help="Write the page to one file that needs nothing else.")
@click.option("--model-explorer", type=NEW_FILE, metavar="FILE", help="Write JSON for Google's Model Explorer.")
@click.option("--profile", is_flag=True, help="Run on random inputs, and show where the time goes.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="0 (the default) for any free one.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
@run_options
@bench_options
@click.pass_obj
def command(request: Request, **flags: Any) -> None:
    """Show MODEL at every stage from the file to what runs (--pass: up to there), on a page of this machine.

    Ctrl-C ends it. What is printed is the address of the page, which holds a secret: whoever knows it can read the
    model.
    """
    from tract_view.cli.showing import show

    show(request, flags)
