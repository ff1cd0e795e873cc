"""Print graphs: one line per node, in order of evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tract_core.data import Constant
from tract_core.model.graph import Graph, Node, OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.const import Const

CONSTANT_COLOUR: Final = "bright_black"


@dataclass(frozen=True, slots=True)
class Show:
    """What a listing has beside id, operator, name, inputs and facts.

    ``columns``: further cells, by title and node id. ``only``: ids of the nodes to list.
    """

    constants: bool = False
    info: bool = False
    labels: bool = False
    folded: bool = True
    columns: Mapping[str, Mapping[int, str]] | None = None
    only: frozenset[int] | None = None


def print_graph(console: Console, model: Graph[Any, Any], show: Show, *, indent: str = "") -> None:
    """The nodes of a model, then its outputs.

    Constants are left out unless asked for; bodies are entered unless folded.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in (
        ("id", "right"),
        ("operator", "left"),
        ("name", "left"),
        ("inputs", "left"),
        ("facts", "left"),
    ):
        table.add_column(title, justify=justify, overflow="fold")  # pyright: ignore[reportArgumentType]: a literal
    for title in show.columns or {}:
        table.add_column(title, justify="right")
    order = model.eval_order([*model.inputs, *model.outputs])
    shown = [model.nodes[n] for n in order if show.only is None or n in show.only]
    for node in shown:
        if show.constants or not isinstance(node.op, Const):
            table.add_row(*_cells(model, node, show), style=CONSTANT_COLOUR if isinstance(node.op, Const) else None)
    console.print(indent + f"[bold]{len(order)} nodes[/bold]" + _hidden(shown, show))
    console.print(table)
    for slot, outlet in enumerate(model.outputs):
        text = Text.assemble(
            "output ", str(slot), ": ", (model.outlet_name(outlet), "bold"), f"  {_fact(model, outlet)}"
        )
        console.print(text)
    if not show.folded:
        _print_bodies(console, shown, show, indent)


def _print_bodies(console: Console, nodes: Sequence[Node[Any, Any]], show: Show, indent: str) -> None:
    from tract_core.model.bodies import bodies_of

    inner = Show(constants=show.constants, info=show.info, labels=show.labels, folded=False)
    for node in nodes:
        for number, body in enumerate(bodies_of(node.op)):
            console.print(f"\n{indent}[bold]body {number}[/bold] of node {node.id} {node.name}")
            print_graph(console, body, inner, indent=indent)


def _hidden(nodes: Sequence[Node[Any, Any]], show: Show) -> str:
    count = 0 if show.constants else sum(isinstance(node.op, Const) for node in nodes)
    return f", {count} constants not shown (--const shows them)" if count else ""


def _cells(model: Graph[Any, Any], node: Node[Any, Any], show: Show) -> list[Text | str]:
    name = Text(node.name)
    if show.info:
        name.append("\n" + describe(node.op), style="cyan")
    if show.labels:
        labels = [model.outlet_labels[o] for o in node.outlets() if o in model.outlet_labels]
        name.append("".join(f"\n{label}" for label in labels), style="italic")
    facts = "\n".join(_fact(model, outlet) for outlet in node.outlets())
    inputs = ", ".join(_source(model, outlet, show) for outlet in node.inputs)
    extra = [cells.get(node.id, "") for cells in (show.columns or {}).values()]
    return [str(node.id), Text(node.op.name, style="green"), name, inputs, facts, *extra]


def _source(model: Graph[Any, Any], outlet: OutletId, show: Show) -> str:
    """The id of a producer; for a constant that is not shown, what it is."""
    op = model.nodes[outlet.node].op
    if isinstance(op, Const) and not show.constants:
        if isinstance(op.value, Constant) and op.value.array.size == 1:
            return f"{op.value.array.reshape(-1)[0]!s}"
        return f"({_fact(model, outlet)})"
    return str(outlet.node) if outlet.slot == 0 else str(outlet)


def _fact(model: Graph[Any, Any], outlet: OutletId) -> str:
    return str(model.outlet_fact(outlet))


def describe(op: Any) -> str:
    """The attributes of an operator, as ``axis=1, start=0``; large things in short."""
    if not is_dataclass(op):
        return str(op)
    return ", ".join(f"{field.name}={_short(getattr(op, field.name))}" for field in fields(op))


def _short(value: Any) -> str:
    if isinstance(value, TypedModel):
        return f"<{len(value.nodes)} nodes>"
    if isinstance(value, tuple):
        return f"({', '.join(_short(item) for item in cast('tuple[Any, ...]', value))})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({describe(value)})"
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
