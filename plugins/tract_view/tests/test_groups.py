"""The tree of groups: small enough to be seen, and everything in it once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tract_view.constants import ConstantTable
from tract_view.entries import Entry, entries_of
from tract_view.groups import MOST, Tree, around, tree_of
from viewed_models import Naming, chain, flat, layers, named, saved

import tract_core
from tract_core.plugins import default_registry
from tract_core.testing.conformance.models import running_sums


def check(tree: Tree, entries: list[Entry]) -> None:
    """What holds of every tree."""
    held = [item for group in tree.groups for item in group.items]
    bodies = {group.body for group in tree.groups if group.body >= 0}
    assert sorted(number for kind, number in held if kind == "entry") == sorted({*range(len(entries))} - bodies)
    assert sorted(number for kind, number in held if kind == "group") == list(range(1, len(tree.groups)))
    for number, group in enumerate(tree.groups):
        assert group.parent < number
        assert 1 <= len(group.items) <= MOST or number == 0
        for kind, one in group.items:
            assert (tree.owner[one] if kind == "entry" else tree.groups[one].parent) == number
    assert tree.groups[0].count == sum(entry.kind == "node" for entry in entries)


def entries_in(path: Path) -> list[Entry]:
    return entries_of(tract_core.load(path).into_runnable("reference").typed, ConstantTable())


@pytest.mark.parametrize("naming", [named, flat])
@pytest.mark.parametrize("count", [1, 7, 500])
def test_everything_is_in_one_group_none_of_which_is_too_large(tmp_path: Path, count: int, naming: Naming) -> None:
    entries = entries_in(saved(tmp_path, layers(count, naming)))
    tree = tree_of(entries)
    check(tree, entries)
    assert len(tree.groups[0].items) <= 12


def test_layers_are_found_by_their_names(tmp_path: Path) -> None:
    entries = entries_in(saved(tmp_path, layers(3, named)))
    tree = tree_of(entries)
    assert [group.name for group in tree.groups[1:]] == [
        "model/layers",
        *(f"model/layers/{layer}{part}" for layer in range(3) for part in ("", "/attn", "/mlp")),
    ]


def test_layers_without_names_are_found_where_few_tensors_pass(tmp_path: Path) -> None:
    """A part ends where a layer does: one tensor passes there, and two or three within a layer."""
    entries = entries_in(saved(tmp_path, layers(30, flat)))
    tree = tree_of(entries)
    ends = {entries[group.items[-1][1]].name for group in tree.groups[1:-1]}
    assert ends <= {flat(layer, 9, "Add") for layer in range(30)}


def test_a_group_of_one_is_none() -> None:
    entries = entries_of(chain("/a/b/tanh", "/c/d/one", "/c/d/two"), ConstantTable())
    tree = tree_of(entries)
    check(tree, entries)
    assert [(group.title, group.name) for group in tree.groups] == [("", ""), ("c/d", "c/d")]


def test_calls_of_one_module_in_several_places_are_no_group() -> None:
    """As of ``relu`` in a block of a ResNet: its two calls give each other nothing, and would make a circle."""
    names = ["/block/conv1/conv", "/block/relu/one", "/block/conv2/conv", "/block/relu/two"]
    entries = entries_of(chain(*names), ConstantTable())
    tree = tree_of(entries)
    assert [group.name for group in tree.groups] == ["", "block"]
    assert len(tree.groups[1].items) == 4


@pytest.mark.parametrize("seed", range(20))
def test_random_names(seed: int) -> None:
    draw = random.Random(seed)
    names = ["/".join(draw.choices(["a", "b", "a.0", "..", "", "x y"], k=draw.randint(1, 5))) for _ in range(90)]
    entries = entries_of(chain(*names), ConstantTable())
    check(tree_of(entries), entries)


def test_no_entries() -> None:
    tree = tree_of([])
    assert len(tree.groups) == 1
    assert tree.groups[0].items == []


def test_bodies_are_groups() -> None:
    entries = entries_of(running_sums(default_registry()), ConstantTable())
    tree = tree_of(entries)
    check(tree, entries)
    (body,) = (group for group in tree.groups if group.body >= 0)
    assert body.title == "sums"
    inside = [number for number, entry in enumerate(entries) if entry.around == body.body]
    assert inside
    number = tree.groups.index(body)
    assert all(number in list(around(tree, tree.owner[one])) for one in inside)
