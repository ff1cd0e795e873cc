"""Times of nodes and groups, and what computes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tract_view.constants import ConstantTable
from tract_view.entries import Entry, entries_of
from tract_view.groups import tree_of
from tract_view.timing import GroupTime, TimedPart, group_times, placings_of, times_of
from viewed_models import chain, layers, named, saved

import tract_core
from tract_core import Model
from tract_core.plugins import default_registry
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.parts import Part
from tract_core.runtime.protocol import running_model
from tract_core.testing.conformance.models import running_sums


def entries_named(*names: str) -> list[Entry]:
    return [
        Entry("node", name, "Op", ((number - 1, 0, 0),) if number else (), place=((), 10 + number))
        for number, name in enumerate(names)
    ]


def timed(number: int, seconds: float | None, cost: str = "1") -> dict[str, Any]:
    costs = {"FMA(F32)": cost, "PARAMS(F32)": "1000000"}
    return {"qualified_id": [[], 10 + number], "cost": costs, "secs_per_iter": seconds}


def profile(nodes: list[dict[str, Any]], *groups: tuple[float, list[int]]) -> str:
    listed = [{"qualified_ids": [[[], 10 + one] for one in ids], "secs_per_iter": seconds} for seconds, ids in groups]
    info = {"iterations": 1, "secs_per_iter": 9.0, "median_secs_per_iter": 8.0}
    return json.dumps({"nodes": nodes, "groups": listed, "profiling_info": info})


def test_what_is_fused_counts_once_where_most_is_done() -> None:
    """Of a kernel of three nodes in two groups, the one in ``b`` has most to do."""
    entries = entries_named("/a/one", "/a/two", "/b/one", "/b/two", "/b/three")
    nodes = [timed(0, 1.0), timed(1, None, "5"), timed(2, None, "70"), timed(3, None, "6"), timed(4, 2.0)]
    times = times_of(entries, profile(nodes, (4.0, [1, 2, 3])), "toy")
    assert times.parts == (TimedPart((0,), 0, 1.0), TimedPart((4,), 4, 2.0), TimedPart((1, 2, 3), 2, 4.0))
    assert (times.turn, times.nodes, times.runtime) == (8.0, 7.0, "toy")
    tree = tree_of(entries)
    found = dict(zip((group.name for group in tree.groups), group_times(entries, tree, times.parts), strict=True))
    assert found == {"": GroupTime(7.0), "a": GroupTime(1.0, 0.0, 4.0), "b": GroupTime(6.0, 4.0, 0.0)}


def test_work_that_depends_on_sizes_is_the_most() -> None:
    entries = entries_named("/a/one", "/b/two")
    (part,) = times_of(entries, profile([timed(0, None, "999"), timed(1, None, "N*4")], (1.0, [0, 1])), "toy").parts
    assert part.main == 1


def test_nodes_that_are_not_shown_are_left_out() -> None:
    entries = entries_named("/a/one")
    assert times_of(entries, profile([timed(0, None), timed(5, 1.0)]), "toy").parts == ()


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_groups_add_up_to_what_was_measured(tmp_path: Path, runtime: str) -> None:
    runnable = tract_core.load(saved(tmp_path, layers(6, named))).into_runnable(runtime)
    entries = entries_of(running_model(runnable.plan, runnable.typed), ConstantTable())
    text = runnable.profile_json([np.ones((3, 4), np.float32)])
    times, tree, parsed = times_of(entries, text, runtime), tree_of(entries), json.loads(text)
    measured = sum(one["secs_per_iter"] or 0.0 for one in parsed["nodes"])
    measured += sum(one["secs_per_iter"] for one in parsed["groups"])
    found = group_times(entries, tree, times.parts)
    assert found[0].seconds == times.nodes == pytest.approx(measured)
    whole = next(number for number, group in enumerate(tree.groups) if group.name == "model/layers")
    layered = [one.seconds for one, group in zip(found, tree.groups, strict=True) if group.parent == whole]
    assert len(layered) == 6
    assert sum(layered) == pytest.approx(times.nodes, rel=1e-9)


def test_the_time_of_a_body_is_that_of_its_node() -> None:
    runnable = Model.from_typed(running_sums(default_registry())).into_runnable("reference")
    entries = entries_of(runnable.typed, ConstantTable())
    inputs = [np.ones((500, 2), np.float32), np.zeros((1, 2), np.float32)]
    times, tree = times_of(entries, runnable.profile_json(inputs), "reference"), tree_of(entries)
    found = group_times(entries, tree, times.parts)
    (loop,) = (part for part in times.parts if entries[part.main].name == "sums")
    (inner,) = (part for part in times.parts if entries[part.main].name == "add")
    (body,) = (number for number, group in enumerate(tree.groups) if group.body >= 0)
    assert inner.seconds < loop.seconds
    assert found[body].seconds == loop.seconds == found[0].seconds == times.nodes


def test_placings() -> None:
    model = chain("a", "b")
    entries = entries_of(model, ConstantTable())
    ids = {entry.name: entry.place[1] for entry in entries}
    numbers = {entry.name: number for number, entry in enumerate(entries)}
    together = Placement(Part((ids["a"], ids["b"])), ("a", "b"), ("Tanh", "Tanh"), "gpu", "map\x1b[0m", "fast")
    gone = Placement(Part((999,)), ("z",), ("Tanh",), "gpu", "map", "")
    found = placings_of(entries, Explanation("toy", (together, gone)))
    assert set(found) == {numbers["a"], numbers["b"]}
    assert (found[numbers["a"]].how, found[numbers["a"]].others) == (r"map\u001b[0m", (numbers["b"],))
