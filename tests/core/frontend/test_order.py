"""Nodes of a file in an order in which they can be added."""

from __future__ import annotations

import random

import pytest

from tract_core.errors import CorruptModel
from tract_core.frontend.order import ordered


def place(index: int) -> str:
    return f"node {index}"


def test_each_node_comes_after_what_it_needs() -> None:
    chance = random.Random(0)
    for count in (0, 1, 2, 40):
        names = list(range(count))
        chance.shuffle(names)
        needs: list[list[int]] = [[] for _ in names]
        for position, name in enumerate(names):  # each needs some that are before it in a secret order
            needs[name] = sorted(chance.sample(names[:position], min(position, 3)), reverse=True)
        found = list(ordered(needs, place))
        assert sorted(found) == list(range(count))
        assert all(found.index(need) < found.index(name) for name in names for need in needs[name])


def test_only_what_is_wanted_and_needed_comes() -> None:
    assert list(ordered([[], [0], [], [2]], place, roots=[1])) == [0, 1]
    assert list(ordered([[], [0]], place, roots=[1, 1, 0])) == [0, 1]


def test_long_chains_need_no_stack() -> None:
    count = 20_000
    assert list(ordered([[n + 1] for n in range(count)] + [[]], place)) == list(range(count, -1, -1))


@pytest.mark.parametrize("needs", [[[0]], [[1], [0]], [[1], [2], [0]], [[], [0, 2], [1]]])
def test_a_circle_is_refused(needs: list[list[int]]) -> None:
    with pytest.raises(CorruptModel, match="depend on each other in a circle") as caught:
        list(ordered(needs, place))
    assert "node " in str(caught.value)
