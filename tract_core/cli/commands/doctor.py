"""``tract MODEL doctor``: everything that stands in the way of running a model, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tract_core.cli.command import ModelCommand

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=ModelCommand, short_help="What keeps it from running, and what to do about it.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.pass_obj
def command(request: Request, as_json: bool) -> None:
    """Report everything that keeps MODEL from loading and running, with what to do about each finding.

    Operators that are missing, attributes that are not supported, facts that are not known, annotations that
    contradict the operators, unsafe paths, limits, symbols; and what is fine. It works on files that do not load. The
    exit status is 0 when MODEL would load and run on the runtime of -r, else 1.
    """
    from tract_core.cli.commands.diagnosis import diagnose
    from tract_core.cli.commands.doctor_report import as_text, print_report

    with request.progress("examining"):
        diagnosis = diagnose(request)
    if as_json:
        click.echo(as_text(diagnosis))
    else:
        print_report(request.console, diagnosis)
    if diagnosis.problems:
        click.get_current_context().exit(1)
