"""The work of ``dump``: choose the nodes, compute the columns, print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tract_core.cli.assertions import asserts_anything, check_assertions, check_outputs
from tract_core.cli.inputs import inputs_for
from tract_core.cli.pipeline import wired
from tract_core.cli.printing.render import Show, names_of_sizes, print_graph
from tract_core.cli.writing import exports, write_exports
from tract_core.errors import InputError
from tract_core.model.graph import Graph
from tract_core.model.op_text import describe
from tract_core.model.questions import node_axes, node_cost
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.runtime.parts import BodyPath, bodies_within
from tract_core.runtime.protocol import running_model
from tract_core.texts import printable

if TYPE_CHECKING:
    from tract_core.cli.request import Request

Flags = dict[str, Any]

Cells = dict[tuple[BodyPath, int], str]
"""What a column says of nodes, each given by its body and its id."""


def dump(request: Request, flags: Flags) -> None:
    """Print what the flags ask for, then check what they assert."""
    with request.progress("loading"):
        model = request.pipeline.at(request.final_stage)
    if exports(flags):
        write_exports(request, wired(model), flags)
    elif flags["audit_json"]:
        print_json(audit(_typed(model)))
    elif flags["dot"] is not None or flags["svg"] is not None:
        from tract_core.cli.commands.draw import draw

        draw(request, model, flags, _chosen(model, flags))
    elif flags["as_json"]:
        from tract_core.cli.commands.profile_report import measured

        print_json(json.dumps(measured(request, wired(model), flags), indent=1))
    elif flags["summary"]:
        print_summary(request, model)
    elif flags["profile"] and not flags["quiet"]:
        from tract_core.cli.commands.profile_report import measured, print_profile

        running = _running(request, wired(model))
        print_profile(request, running, measured(request, running, flags), _show(request, running, flags))
    elif not flags["quiet"]:
        shown = _running(request, _typed(model)) if flags["explain"] else model
        print_graph(request.console, shown, _show(request, shown, flags))
    if flags["trace"]:
        from tract_core.cli.commands.profile_report import write_trace

        typed = wired(model)
        write_trace(request, typed, flags, inputs_for(request, typed, {**flags, "random": True}))
    if asserts_anything(flags):
        typed = wired(model)
        check_assertions(typed, flags)
        check_outputs(request, typed, flags)


def audit(model: TypedModel) -> str:
    """The whole graph as JSON: properties, assertions, inputs, outputs and nodes."""

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
            "sizes": {name: str(size) for name, size in names_of_sizes(model)},
            "inputs": [wire(outlet) for outlet in model.inputs],
            "outputs": [wire(outlet) for outlet in model.outputs],
            "nodes": nodes,
        },
        indent=1,
    )


def print_json(text: str) -> None:
    """Machine-readable output, on standard output as it is."""
    import click

    click.echo(text)


def print_summary(request: Request, model: Graph[Any, Any]) -> None:
    """Properties, inputs and outputs."""
    console = request.console
    for name, array in sorted(model.properties.items()):
        text = printable(" ".join(map(str, array.reshape(-1).tolist())))
        console.line(f"property {printable(name)}: {text}")
    for title, outlets in (("input", model.inputs), ("output", model.outputs)):
        for slot, outlet in enumerate(outlets):
            console.line(f"{title} {slot}: {model.outlet_name(outlet)}  {model.outlet_fact(outlet)}")
    count = sum(1 for _ in model.live_nodes())
    console.line(f"{count} nodes")


def _typed(model: Graph[Any, Any]) -> TypedModel:
    if not isinstance(model, TypedModel):
        raise InputError("only a typed model has costs, axes and timings", hint="use --pass type, or a later one")
    return model


def _running(request: Request, model: TypedModel) -> TypedModel:
    """The model that the runtime runs, which it may have made of the one given."""
    return running_model(request.prepare(model), model)


def _show(request: Request, model: Graph[Any, Any], flags: Flags) -> Show:
    columns: dict[str, Cells] = {}
    if flags["cost"]:
        columns["cost"] = _costs(_typed(model))
    if flags["invariants"]:
        columns["axes"] = _axes(_typed(model))
    if flags["explain"]:
        columns["runs"] = _placements(request, _typed(model))
    return Show(
        constants=flags["constants"],
        info=flags["info"],
        labels=flags["labels"],
        folded=not flags["unfold"],
        columns=columns,
        only=_chosen(model, flags),
    )


def _chosen(model: Graph[Any, Any], flags: Flags) -> frozenset[int] | None:
    """Ids of the nodes that the filters leave; ``None`` when there is no filter."""
    chosen = {node.id for node in model.live_nodes()}
    if flags["node_id"] is not None:
        chosen &= {model.node(flags["node_id"]).id}
    if flags["successors"] is not None:
        chosen &= {i.node for outlet in model.node(flags["successors"]).outputs for i in outlet.successors}
    if flags["op_name"] is not None:
        chosen &= {node.id for node in model.live_nodes() if node.op.name.lower() == flags["op_name"].lower()}
    if flags["node_name"] is not None:
        chosen &= {node.id for node in model.live_nodes() if flags["node_name"] in node.name}
    filtered = any(flags[name] is not None for name in ("node_id", "successors", "op_name", "node_name"))
    if filtered and not chosen:
        raise InputError("no node fits the filters", hint="without them, all nodes are listed")
    return frozenset(chosen) if filtered else None


def _costs(model: TypedModel) -> Cells:
    return {
        place: "\n".join(f"{kind}={count}" for kind, count in node_cost(body, node).items())
        for place, body, node in _everywhere(model)
    }


def _axes(model: TypedModel) -> Cells:
    found = {place: node_axes(body, node) for place, body, node in _everywhere(model)}
    return {place: str(mapping) for place, mapping in found.items() if mapping is not None}


def _placements(request: Request, model: TypedModel) -> Cells:
    """``model``: the one that runs."""
    found: Cells = {}
    for placement in request.prepare(model).explain().placements:
        for node, name in zip(placement.part.nodes, placement.names, strict=True):
            others = ", ".join(other for other in placement.names if other != name)
            found[placement.part.body, node] = (
                f"{placement.where}: {placement.how}{f' with {others}' if others else ''}"
            )
    return found


def _everywhere(model: TypedModel) -> Iterator[tuple[tuple[BodyPath, int], TypedModel, TypedNode]]:
    """Every node of a model and of the bodies in it, with where it is."""
    for path, body in bodies_within(model):
        for node in body.live_nodes():
            yield (path, node.id), body, node
