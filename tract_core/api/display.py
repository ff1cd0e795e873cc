"""How models look in terminals and notebooks: short, escaped, without anything fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tract_core.model.graph import Graph, OutletId
    from tract_core.model.typed import TypedModel

SHOWN = 16
"""Inputs, and outputs, that are listed."""

DRAWN = 300
"""Boxes of a graph that is drawn in a notebook."""


def describe_model(kind: str, graph: Graph[Any, Any]) -> str:
    """``Model(x: B,3,f32 -> y: B,f32; 12 nodes)``."""
    nodes = sum(1 for _ in graph.live_nodes())
    return f"{kind}({_listed(graph, graph.inputs)} -> {_listed(graph, graph.outputs)}; {nodes} nodes)"


def rich_of(graph: Graph[Any, Any] | None) -> Iterator[tuple[str, Any]]:
    """The fields that rich shows."""
    if graph is None:
        yield "consumed", True
        return
    yield "inputs", dict(_pairs(graph, graph.inputs))
    yield "outputs", dict(_pairs(graph, graph.outputs))
    yield "nodes", sum(1 for _ in graph.live_nodes())


def html_of(kind: str, graph: Graph[Any, Any] | None) -> str:
    """A small table of inputs and outputs, and the graph as a picture unless that would be large."""
    from html import escape

    if graph is None:
        return f"<b>{escape(kind)}</b> (consumed)"
    nodes = sum(1 for _ in graph.live_nodes())
    return f"<b>{escape(kind)}</b>, {nodes} nodes<table>{_interface(graph)}</table>{_drawn(graph)}"


def html_of_fact(kind: str, fact: str) -> str:
    """A fact in one line."""
    from html import escape

    return f"<b>{escape(kind)}</b> <code>{escape(fact)}</code>"


def html_of_state(kind: str, model: TypedModel, come: int | None, kept: Mapping[int, Any] | None = None) -> str:
    """A small table of inputs and outputs, and of the nodes that keep something.

    ``come``: how many positions of a signal have come, if the model takes one. ``kept``: what nodes keep, by number,
    where that is known.
    """
    from html import escape

    keeping = _keeping(model)
    rows = [_row("keeps", model.nodes[one].name, _kept(model, one, kept)) for one in keeping[:SHOWN]]
    if len(keeping) > SHOWN:
        rows.append(_row("keeps", "...", f"{len(keeping) - SHOWN} more"))
    so_far = "" if come is None else f", {come} positions of the signal have come"
    return f"<b>{escape(kind)}</b>{so_far}<table>{_interface(model)}{''.join(rows)}</table>"


def _keeping(model: TypedModel) -> list[int]:
    """The nodes that keep something from turn to turn."""
    from tract_core.plugins.keys import STATE

    states = model.registry[STATE]
    return [node.id for node in model.live_nodes() if states.find(type(node.op)) is not None and node.op.keeps]


def _kept(model: TypedModel, node: int, kept: Mapping[int, Any] | None) -> str:
    """What a node keeps: type and shape of an array, else what kind of thing it is; the operator where that is open."""
    import numpy as np

    from tract_core.data import DatumType

    op, value = model.nodes[node].op.name, (kept or {}).get(node)
    if value is None:
        return op
    if type(value) is not np.ndarray or np.asarray(value).dtype.hasobject:
        return f"{op}: {type(value).__name__}"
    array: np.ndarray[Any, Any] = np.asarray(value)
    return f"{op}: {','.join(map(str, (*array.shape, DatumType.from_numpy(array.dtype).short)))}"


def _interface(graph: Graph[Any, Any]) -> str:
    """The rows of inputs and outputs."""
    ends = (("input", graph.inputs), ("output", graph.outputs))
    return "".join(_row(role, name, fact) for role, outlets in ends for name, fact in _pairs(graph, outlets))


def _row(role: str, name: str, text: str) -> str:
    from html import escape

    return f"<tr><td>{role}</td><td>{escape(name)}</td><td><code>{escape(text)}</code></td></tr>"


def _drawn(graph: Graph[Any, Any]) -> str:
    from tract_core.drawing import inline_svg_of, picture_of

    if len(graph.nodes) > DRAWN * 10:
        return ""
    picture = picture_of(graph)
    if picture.size > DRAWN or all(box.kind != "node" for box in picture.boxes):
        return ""
    return f'<div style="max-height:40em;overflow:auto">{inline_svg_of(picture)}</div>'


def size(count: int) -> str:
    """A number of bytes, for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def _pairs(graph: Graph[Any, Any], outlets: Sequence[OutletId]) -> list[tuple[str, str]]:
    pairs = [(graph.outlet_name(outlet), str(graph.outlet_fact(outlet))) for outlet in outlets[:SHOWN]]
    return [*pairs, ("...", f"{len(outlets) - SHOWN} more")] if len(outlets) > SHOWN else pairs


def _listed(graph: Graph[Any, Any], outlets: Sequence[OutletId]) -> str:
    return "; ".join(f"{name}: {fact}" for name, fact in _pairs(graph, outlets)) or "nothing"
