"""How models look in terminals and notebooks: short, escaped, without anything fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tract_core.model.graph import Graph, OutletId

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
    rows = [
        f"<tr><td>{role}</td><td>{escape(name)}</td><td><code>{escape(fact)}</code></td></tr>"
        for role, outlets in (("input", graph.inputs), ("output", graph.outputs))
        for name, fact in _pairs(graph, outlets)
    ]
    nodes = sum(1 for _ in graph.live_nodes())
    return f"<b>{escape(kind)}</b>, {nodes} nodes<table>{''.join(rows)}</table>{_drawn(graph)}"


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
