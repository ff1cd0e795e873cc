"""The JSON that Google's Model Explorer reads: a collection with a graph for each stage.

Written from its published schema (``graph_builder.py`` of ``ai-edge-model-explorer``), without that package. Groups are
its namespaces; what is in a group that has no name of its own, as a part of a long column, is told by its title. Times
are attributes, of nodes in microseconds and of groups as texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tract_view.groups import Tree, tree_of
from tract_view.timing import group_times

if TYPE_CHECKING:
    from tract_view.entries import Entry
    from tract_view.snapshots import Snapshot
    from tract_view.timing import Placing, Times


def explorer_json(title: str, snapshots: Sequence[Snapshot]) -> str:
    """All stages of a model as one collection, as Model Explorer's own loader of JSON takes it."""
    graphs = [_graph(snapshot) for snapshot in snapshots]
    return json.dumps({"label": title, "graphs": graphs, "graphSorting": "node_count_asc"}, separators=(",", ":"))


def _graph(snapshot: Snapshot) -> dict[str, Any]:
    entries, tree = snapshot.entries, tree_of(snapshot.entries)
    spaces = _namespaces(tree)
    nodes = [
        _node(number, entries, spaces[tree.owner[number]], snapshot.placings.get(number), snapshot.times)
        for number in range(len(entries))
    ]
    graph: dict[str, Any] = {"id": snapshot.stage, "nodes": nodes}
    if snapshot.times is not None:
        graph["groupNodeAttributes"] = _group_attributes(snapshot.times, entries, tree, spaces)
    return graph


def _namespaces(tree: Tree) -> list[str]:
    """The path of each group; a slash within a title is none of the path."""
    found: list[str] = []
    for group in tree.groups:
        above = found[group.parent] if group.parent >= 0 else ""
        title = group.title.replace("/", ".").strip(".") or group.title.replace("/", "_")
        found.append(f"{above}/{title}".strip("/"))
    return found


def _node(
    number: int, entries: Sequence[Entry], space: str, placing: Placing | None, times: Times | None
) -> dict[str, Any]:
    entry = entries[number]
    pairs = [("name", entry.name), *entry.attributes, *_more(number, placing, times)]
    pairs += [(f"constant {one.slot}", f"{one.name} {one.fact}") for one in entry.constants]
    return {
        "id": str(number),
        "label": entry.op if entry.kind == "node" else entry.name,
        "namespace": space,
        "attrs": [{"key": key, "value": text} for key, text in pairs],
        "incomingEdges": [
            {"sourceNodeId": str(source), "sourceNodeOutputId": str(slot), "targetNodeInputId": str(at)}
            for source, slot, at in entry.inputs
        ],
        "outputsMetadata": [
            {"id": str(slot), "attrs": [_pair("__tensor_tag", f"{entry.name}:{slot}"), _pair("shape", fact)]}
            for slot, fact in enumerate(entry.facts)
        ],
    }


def _pair(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": value}


def _more(number: int, placing: Placing | None, times: Times | None) -> Iterator[tuple[str, str]]:
    if placing is not None:
        yield "computed by", f"{placing.how} on {placing.where}"
    for part in times.parts if times is not None else ():
        if number in part.entries:
            together = f", with {len(part.entries) - 1} others" if len(part.entries) > 1 else ""
            yield "time (us)", f"{part.seconds * 1e6:.1f}{together}"


def _group_attributes(
    times: Times, entries: Sequence[Entry], tree: Tree, spaces: Sequence[str]
) -> Mapping[str, Mapping[str, str]]:
    total = times.nodes or 1.0
    return {
        space: {"time": f"{one.seconds * 1e3:.3f} ms", "share": f"{100 * one.seconds / total:.1f} %"}
        for space, one in zip(spaces, group_times(entries, tree, times.parts), strict=True)
    }
