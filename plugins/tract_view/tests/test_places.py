"""Where boxes go: none over another, arrows downwards, tensors that cross a border through a port."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from tract_view.constants import ConstantTable
from tract_view.entries import Entry, entries_of
from tract_view.groups import tree_of
from tract_view.places import MOST_PORTS, Placed, placed_groups
from viewed_models import Naming, chain, flat, layers, named, saved

import tract_core
from tract_core.plugins import default_registry
from tract_core.testing.conformance.models import running_sums


def no_box_is_over_another(placed: Placed) -> bool:
    return not any(
        abs(a.x - b.x) < (a.width + b.width) / 2 - 1e-6 and abs(a.y - b.y) < (a.height + b.height) / 2 - 1e-6
        for a, b in combinations(placed.boxes, 2)
    )


def entry(*read: int, name: str = "") -> Entry:
    return Entry("node", name, "Op", tuple((one, 0, slot) for slot, one in enumerate(read)), ("4,f32",))


@pytest.mark.parametrize("naming", [named, flat])
def test_boxes_and_arrows(tmp_path: Path, naming: Naming) -> None:
    path = saved(tmp_path, layers(40, naming))
    entries = entries_of(tract_core.load(path).into_runnable("reference").typed, ConstantTable())
    for placed in placed_groups(entries, tree_of(entries)):
        assert no_box_is_over_another(placed)
        assert all(box.x - box.width / 2 + 1e-6 >= 0 for box in placed.boxes)
        for wire in placed.wires:
            assert not wire.back
            assert placed.boxes[wire.source].y < placed.boxes[wire.target].y


def test_a_tensor_that_crosses_borders_has_a_port_in_each_group() -> None:
    names = ["/a/x", "/a/y", "/b/c/x", "/b/c/y", "/b/d"]
    entries = [entry(*([number - 1] if number else []), name=name) for number, name in enumerate(names)]
    tree = tree_of(entries)
    placed = dict(zip((group.name for group in tree.groups), placed_groups(entries, tree), strict=True))
    ports = {
        name: [(box.kind, box.lines) for box in one.boxes if box.kind in ("in", "out")] for name, one in placed.items()
    }
    assert ports == {
        "": [],
        "a": [("out", ("/a/y",))],
        "b": [("in", ("/a/y",))],
        "b/c": [("in", ("/a/y",)), ("out", ("/b/c/y",))],
    }
    (across,) = placed[""].wires
    assert across.tensors == 1
    assert [placed[""].boxes[one].lines[0] for one in (across.source, across.target)] == ["a", "b"]


def test_many_tensors_share_a_port() -> None:
    count = MOST_PORTS + 3
    entries = [Entry("input", f"x{number}", "source", (), ("4,f32",)) for number in range(count)]
    entries += [entry(number, name=f"/g/n{number}") for number in range(count)]
    tree = tree_of(entries)
    (group,) = [one for one, held in zip(placed_groups(entries, tree), tree.groups, strict=True) if held.name == "g"]
    assert [box.lines for box in group.boxes if box.kind == "in"] == [(f"{count} tensors come in",)]
    assert sum(wire.tensors for wire in group.wires) == count


def test_a_circle_of_groups_is_drawn_with_one_arrow_back() -> None:
    """The group ``a`` gives to ``b``, which gives to ``a`` again."""
    names = ["/a/x", "/b/x", "/b/y", "/a/y"]
    entries = [
        *(entry(*([one - 1] if one else []), name=name) for one, name in enumerate(names)),
        entry(0, name="/a/z"),
    ]
    tree = tree_of(entries)
    whole = next(iter(placed_groups(entries, tree)))
    assert sorted(wire.back for wire in whole.wires) == [False, True]


def test_outputs_of_one_node_are_told_apart() -> None:
    entries = [
        Entry("node", "/a/split", "Split", (), ("2,f32", "3,f32")),
        entry(0, name="/a/other"),
        Entry("node", "/b/x", "Op", ((0, 1, 0),), ("3,f32",)),
        entry(2, name="/b/y"),
    ]
    tree = tree_of(entries)
    lines = [box.lines[0] for one in placed_groups(entries, tree) for box in one.boxes if box.kind in ("in", "out")]
    assert lines == ["/a/split:1", "/a/split:1"]


def test_a_body_has_its_own_inputs_and_outputs() -> None:
    entries = entries_of(running_sums(default_registry()), ConstantTable())
    tree = tree_of(entries)
    placed = list(placed_groups(entries, tree))
    (body,) = (number for number, group in enumerate(tree.groups) if group.body >= 0)
    kinds = {entries[box.number].kind for box in placed[body].boxes if box.kind == "entry"}
    assert {"input", "output"} <= kinds
    assert not any(box.kind in ("in", "out") for box in placed[body].boxes)


def test_long_names_do_not_make_wide_boxes() -> None:
    entries = entries_of(chain("n" * 250), ConstantTable())
    assert max(box.width for one in placed_groups(entries, tree_of(entries)) for box in one.boxes) < 300


def test_nothing_to_place() -> None:
    assert [one.boxes for one in placed_groups([], tree_of([]))] == [()]
