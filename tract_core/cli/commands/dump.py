"""``tract MODEL dump``: print the graph at a stage, with costs or timings beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tract_core.cli import completion
from tract_core.cli.options import assertion_options, bench_options, file_or_output, run_options, trace_option
from tract_core.cli.writing import ExportingCommand

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=ExportingCommand, short_help="Print the graph (the default).")
@click.option("--const", "constants", is_flag=True, help="Show constants too.")
@click.option("--info", is_flag=True, help="Show the attributes of operators.")
@click.option("--outlet-labels", "labels", is_flag=True, help="Show labels of outlets.")
@click.option("--unfold", is_flag=True, help="Enter the bodies of loops and branches.")
@click.option("--cost", is_flag=True, help="Show what each node costs, in operations.")
@click.option("--profile", is_flag=True, help="Run on random inputs, and list nodes and operators by time.")
@trace_option
@click.option("--invariants", is_flag=True, help="Show which axes pass through each node.")
@click.option("--explain", is_flag=True, help="Show where the runtime runs each node, and why.")
@click.option("--node-id", type=int, metavar="N", help="Only this node.")
@click.option("--successors", type=int, metavar="N", help="Only the nodes that read this one.")
@click.option("--op-name", metavar="NAME", shell_complete=completion.operators, help="Only nodes of this operator.")
@click.option(
    "--node-name", metavar="TEXT", shell_complete=completion.nodes, help="Only nodes whose name contains this."
)
@click.option("-s", "--summary", is_flag=True, help="Properties, inputs and outputs only.")
@click.option("--json", "as_json", is_flag=True, help="Costs (and timings, with --profile) as JSON.")
@click.option("--audit-json", is_flag=True, help="The whole graph as JSON.")
@file_or_output("--dot", help="Draw the graph, as a text for Graphviz.")
@file_or_output("--svg", help="Draw the graph, as SVG.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing, only check assertions.")
@run_options
@bench_options
@assertion_options
@click.pass_obj
def command(request: Request, **flags: Any) -> None:
    """Print the graph of MODEL at the stage of --pass (default: after everything that changes it)."""
    from tract_core.cli.commands.dump_graph import dump

    dump(request, flags)
