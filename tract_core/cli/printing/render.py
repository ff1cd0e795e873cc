"""Print graphs: one line per node, in order of evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tract_core.cli.printing.console import Console
from tract_core.cli.printing.printed import Column, PrintedTable
from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.dims.names import write_name
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import Graph, Node, OutletId
from tract_core.model.op_text import describe
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel
from tract_core.runtime.parts import BodyPath
from tract_core.texts import printable

CONSTANT_COLOUR: Final = "bright_black"


READABLE: Final = 24
"""Characters of a further column for which the other columns make room."""


@frozen
class Show:
    """What a listing has beside id, operator, name, inputs and facts.

    ``columns``: further cells, by title, and by the body and the id of a node. ``body``: the one that is listed.
    ``only``: ids of the nodes to list. ``constants``: also nodes that are constants. ``info``: what operators say
    of themselves. ``labels``: the names of outputs. ``folded``: bodies as one line.
    """

    constants: bool = False
    info: bool = False
    labels: bool = False
    folded: bool = True
    columns: Mapping[str, Mapping[tuple[BodyPath, int], str]] | None = None
    body: BodyPath = ()
    only: frozenset[int] | None = None


def names_of_sizes(model: Graph[Any, Any]) -> list[tuple[str, Dim]]:
    """The symbols in facts and operators that are names of longer sizes, each with that."""
    definitions = model.symbols.definitions
    if not isinstance(model, TypedModel) or not len(definitions):
        return []
    return [*definitions.mentioned(symbols_in(model))]


def print_graph(console: Console, model: Graph[Any, Any], show: Show, *, indent: str = "") -> None:
    """The nodes of a model, then its outputs.

    Constants are left out unless asked for; bodies are entered unless folded.
    """
    order = model.eval_order([*model.inputs, *model.outputs])
    chosen = [model.nodes[n] for n in order if show.only is None or n in show.only]
    shown = [node for node in chosen if show.constants or not isinstance(node.op, Const)]
    console.line(indent, (f"{len(order)} nodes", "bold"), _hidden(chosen, show))
    if show.info:
        for node in shown:
            _print_block(console, model, node, show)
    else:
        console.table(_node_table(model, shown, show))
    for slot, outlet in enumerate(model.outputs):
        console.line(f"output {slot}: ", (model.outlet_name(outlet), "bold"), f"  {_fact(model, outlet)}")
    for name, size in names_of_sizes(model):
        console.line("size ", (write_name(name), "bold"), f": {size}")
    if not show.folded:
        _print_bodies(console, chosen, show, indent)


def _node_table(model: Graph[Any, Any], nodes: Sequence[Node[Any, Any]], show: Show) -> PrintedTable:
    """A row for each node."""
    columns = [Column("id", right=True, whole=True), *map(Column, ("operator", "name", "inputs", "facts"))]
    for title, cells in (show.columns or {}).items():
        longest = max((len(line) for cell in cells.values() for line in cell.split("\n")), default=0)
        columns.append(Column(title, right=True, whole=longest <= READABLE))
    table = PrintedTable(tuple(columns))
    for node in nodes:
        extra = [cells.get((show.body, node.id), "") for cells in (show.columns or {}).values()]
        name = "\n".join([node.name, *_labels(model, node, show)])
        colour = CONSTANT_COLOUR if isinstance(node.op, Const) else ""
        cells = _inputs(model, node, show), _facts(model, node), *extra
        table.add(str(node.id), (node.op.name, "green"), name, *cells, style=colour)
    return table


def _print_block(console: Console, model: Graph[Any, Any], node: Node[Any, Any], show: Show) -> None:
    """Some lines for one node: what does not fit beside the others in a table."""
    console.line(f"{node.id:3}  ", (node.op.name, "green"), f"  {node.name}")
    lines = {
        "attributes": describe(node.op),
        "inputs": _inputs(model, node, show),
        "facts": _facts(model, node),
        "labels": " ".join(_labels(model, node, show)),
        **{title: cells.get((show.body, node.id), "") for title, cells in (show.columns or {}).items()},
    }
    for title, content in lines.items():
        if content:
            console.line((f"{title:10}  ", "dim"), content, indent=5)


def _print_bodies(console: Console, nodes: Sequence[Node[Any, Any]], show: Show, indent: str) -> None:
    from tract_core.model.bodies import bodies_of

    for node in nodes:
        for number, body in enumerate(bodies_of(node.op)):
            inner = replace(show, only=None, body=(*show.body, (node.id, number)))
            console.line(f"\n{indent}", (f"body {number}", "bold"), f" of node {node.id} {node.name}")
            print_graph(console, body, inner, indent=indent)


def _hidden(nodes: Sequence[Node[Any, Any]], show: Show) -> str:
    count = 0 if show.constants else sum(isinstance(node.op, Const) for node in nodes)
    return f", {count} constants not shown (--const shows them)" if count else ""


def _labels(model: Graph[Any, Any], node: Node[Any, Any], show: Show) -> list[str]:
    return [model.outlet_labels[o] for o in node.outlets() if show.labels and o in model.outlet_labels]


def _facts(model: Graph[Any, Any], node: Node[Any, Any]) -> str:
    return "\n".join(_fact(model, outlet) for outlet in node.outlets())


def _inputs(model: Graph[Any, Any], node: Node[Any, Any], show: Show) -> str:
    return ", ".join(_source(model, outlet, show) for outlet in node.inputs)


def _source(model: Graph[Any, Any], outlet: OutletId, show: Show) -> str:
    """The id of a producer; for a constant that is not shown, what it is."""
    op = model.nodes[outlet.node].op
    if isinstance(op, Const) and not show.constants:
        if isinstance(op.value, Constant) and op.value.array.size == 1:
            return printable(f"{op.value.array.reshape(-1)[0]!s}")
        return f"({_fact(model, outlet)})"
    return str(outlet.node) if outlet.slot == 0 else str(outlet)


def _fact(model: Graph[Any, Any], outlet: OutletId) -> str:
    return str(model.outlet_fact(outlet))
