"""The JSON for Model Explorer, held to what its schema asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tract_view.constants import ConstantTable
from tract_view.entries import entries_of
from tract_view.model_explorer import explorer_json
from tract_view.snapshots import Snapshot
from tract_view.timing import Placing, TimedPart, Times
from viewed_models import chain, flat, layers, named, saved

import tract_core

TEXTS = {"id": str, "label": str, "namespace": str}
LISTS = ("attrs", "incomingEdges", "outputsMetadata")


def graphs_of(*snapshots: Snapshot) -> list[dict[str, Any]]:
    found = json.loads(explorer_json("m", snapshots))
    assert found["label"] == "m"
    return found["graphs"]


def pairs(found: list[dict[str, str]]) -> dict[str, str]:
    assert all(set(one) == {"key", "value"} and isinstance(one["value"], str) for one in found)
    return {one["key"]: one["value"] for one in found}


@pytest.mark.parametrize("naming", [named, flat])
def test_every_node_is_there_and_every_edge_leads_to_one(tmp_path: Path, naming: Any) -> None:
    typed = tract_core.load(saved(tmp_path, layers(9, naming))).into_runnable("reference").typed
    entries = tuple(entries_of(typed, ConstantTable()))
    (graph,) = graphs_of(Snapshot("type", entries, {}))
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert (graph["id"], len(nodes), len(graph["nodes"])) == ("type", len(entries), len(entries))
    for node in graph["nodes"]:
        assert all(isinstance(node[name], kind) for name, kind in TEXTS.items())
        assert all(isinstance(node[name], list) for name in LISTS)
        for edge in node["incomingEdges"]:
            source = nodes[edge["sourceNodeId"]]
            assert edge["sourceNodeOutputId"] in {one["id"] for one in source["outputsMetadata"]}
        assert "//" not in node["namespace"]
        assert not node["namespace"].startswith("/")
    assert sum(len(node["incomingEdges"]) for node in graph["nodes"]) == sum(len(entry.inputs) for entry in entries)


def test_what_is_said_of_a_node() -> None:
    entries = tuple(entries_of(chain("/a/b/one", "/a/b/two"), ConstantTable()))
    number = next(number for number, entry in enumerate(entries) if entry.name == "/a/b/two")
    times = Times("toy", 2.0, 1.0, (TimedPart((number - 1, number), number, 0.25),))
    (graph,) = graphs_of(Snapshot("optimize", entries, {number: Placing("gpu", "map", "")}, times))
    node = graph["nodes"][number]
    assert (node["label"], node["namespace"]) == ("Tanh", "a.b")
    assert pairs(node["attrs"]) == {
        "name": "/a/b/two",
        "computed by": "map on gpu",
        "time (us)": "250000.0, with 1 others",
    }
    assert pairs(node["outputsMetadata"][0]["attrs"]) == {"__tensor_tag": "/a/b/two:0", "shape": "2,3,f32"}
    assert graph["groupNodeAttributes"]["a.b"] == {"time": "250.000 ms", "share": "25.0 %"}
    (last,) = (node for node in graph["nodes"] if node["label"] == "Add")
    assert pairs(last["attrs"])["constant 1"].startswith("weight 2,3,f32")


def test_no_stages() -> None:
    assert graphs_of() == []
