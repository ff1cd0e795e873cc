"""``tract MODEL compare``: node by node against another engine, runtime, stage, run, or arrays in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli import completion
from tract_core.cli.command import ModelCommand
from tract_core.cli.options import NPZ, assertion_options, flag, run_options
from tract_core.cli.stages import NamesStage

if TYPE_CHECKING:
    from tract_core.cli.request import Request

WITH_WHAT: Final = "What to compare with (one of these)"


@click.command(cls=ModelCommand, short_help="Compare node by node with a reference.")
@flag(
    WITH_WHAT,
    "--with",
    "partner",
    metavar="ENGINE",
    shell_complete=completion.partners,
    help="Another engine, which runs MODEL's file, as 'onnxruntime'.",
)
@flag(
    WITH_WHAT,
    "--against",
    metavar="NAME",
    shell_complete=completion.runtimes,
    help="The same model on another runtime.",
)
@click.option("--stage", cls=NamesStage, group=WITH_WHAT, help="The model as it was at")
@flag(WITH_WHAT, "--npz", type=NPZ, metavar="NPZ", help="Arrays, by tensor name, as 'run --save-steps' saves them.")
@flag(WITH_WHAT, "--twice", is_flag=True, help="A second run of the same model.")
@flag(
    WITH_WHAT,
    "--stream",
    is_flag=True,
    help="With --pulse: the model over the whole signal, a random one unless given.",
)
@click.option(
    "--runtime", metavar="NAME", shell_complete=completion.runtimes, help="Run MODEL on it. Default: that of -r."
)
@click.option(
    "--original",
    metavar="FILE",
    type=click.Path(exists=True),
    help="The file that the engine of --with runs. Default: MODEL.",
)
@click.option("--cumulative", is_flag=True, help="Let errors add up: do not give each node the reference's inputs.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what differs.")
@click.option("--json", "as_json", is_flag=True, help="The verdict on every tensor as JSON.")
@run_options
@assertion_options(approx="approximate")
@click.pass_obj
def command(request: Request, **flags: Any) -> None:
    """Run MODEL and a reference, and name the first node whose output differs beyond --approx, with both values.

    Tensors are compared by name, in the order of evaluation. Each node gets the reference's tensors as inputs where
    the reference has them, so that only the nodes that are wrong differ.
    """
    from tract_core.cli.commands.compare_nodes import compare
    from tract_core.cli.commands.compare_stream import compare_stream

    if sum(bool(flags[name]) for name in ("partner", "against", "stage", "npz", "twice", "stream")) != 1:
        raise click.UsageError("say what to compare with: one of --with, --against, --stage, --npz, --twice, --stream")
    if flags["original"] and not flags["partner"]:
        raise click.UsageError("--original is for --with")
    if flags["stream"] and flags["cumulative"]:
        raise click.UsageError("--stream gives no node the reference's inputs: errors always add up")
    (compare_stream if flags["stream"] else compare)(request, flags)
