"""``tract MODEL dump``: print the graph at a stage, with costs or timings beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.options import assertion_options, bench_options, file_or_output, run_options, trace_option

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel


@click.command(cls=ModelCommand, short_help="Print the graph (the default).")
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
@click.option("--op-name", metavar="NAME", help="Only nodes of this operator.")
@click.option("--node-name", metavar="TEXT", help="Only nodes whose name contains this.")
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
    from tract_core.cli.dump_graph import dump

    dump(request, flags)


def check_outputs(request: Request, model: TypedModel, flags: dict[str, Any], arrays: Any = None) -> None:
    """Run the model and check its outputs, when the flags assert something of them. ``arrays``: its inputs."""
    from tract_core.cli.assertions import Assertions
    from tract_core.cli.inputs import inputs_for

    assertions = Assertions.of(flags)
    if assertions.wants_outputs:
        given = inputs_for(request, model, flags) if arrays is None else arrays
        plan = request.prepare(model)
        with request.progress("running"):
            outputs = plan.spawn().run(given)
        assertions.check_outputs(model, outputs)


def asserts_anything(flags: dict[str, Any]) -> bool:
    """Whether the flags assert something of the graph or of the outputs."""
    from tract_core.cli.assertions import Assertions

    return Assertions.of(flags) != Assertions()


def check_assertions(model: TypedModel, flags: dict[str, Any]) -> None:
    """Check what the flags assert of the graph."""
    from tract_core.cli.assertions import Assertions

    Assertions.of(flags).check_graph(model)


def audit(model: TypedModel) -> str:
    """The whole graph as JSON: properties, assertions, inputs, outputs and nodes."""
    from tract_core.cli.render import describe
    from tract_core.model.questions import node_cost

    def wire(outlet: Any) -> dict[str, Any]:
        fact = model.outlet_fact(outlet)
        return {"name": model.outlet_name(outlet), "node": outlet.node, "slot": outlet.slot, "fact": str(fact)}

    nodes = [
        {
            "id": node.id,
            "name": node.name,
            "op": node.op.name,
            "info": describe(node.op),
            "inputs": [str(outlet) for outlet in node.inputs],
            "outputs": [{"fact": str(o.fact), "successors": [str(i) for i in o.successors]} for o in node.outputs],
            "cost": {kind: str(count) for kind, count in node_cost(model, node).items()},
        }
        for node in model.live_nodes()
    ]
    return json.dumps(
        {
            "properties": {name: array.tolist() for name, array in model.properties.items()},
            "assertions": [str(assertion) for assertion in model.symbols],
            "inputs": [wire(outlet) for outlet in model.inputs],
            "outputs": [wire(outlet) for outlet in model.outputs],
            "nodes": nodes,
        },
        indent=1,
    )
