"""Boxes in layers: whatever the graph, arrows lead downwards and nothing overlaps."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tract_core.drawing import layout
from tract_core.drawing.layout import Layout, TooLarge, place

GAP = (20.0, 40.0)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[float, float]], list[tuple[int, int]]]:
    """Heights, rooms and edges; some edges twice, some boxes without any."""
    count = draw(st.integers(0, 25))
    size = st.floats(1, 200)
    heights = draw(st.lists(size, min_size=count, max_size=count))
    rooms = draw(st.lists(st.tuples(size, size), min_size=count, max_size=count))
    numbers = st.integers(0, max(count - 1, 0))
    pairs = draw(st.lists(st.tuples(numbers, numbers), max_size=50)) if count else []
    return heights, rooms, [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]


def check(found: Layout, heights: list[float], rooms: list[tuple[float, float]], edges: list[tuple[int, int]]) -> None:
    """Raises AssertionError unless the drawing is as a drawing must be."""
    spans: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for (x, y), height, (left, right) in zip(found.centres, heights, rooms, strict=True):
        assert x - left >= -1e-6
        assert x + right <= found.width + 1e-6
        assert y - height / 2 >= -1e-6
        assert y + height / 2 <= found.height + 1e-6
        spans[round(y, 3)].append((x - left, x + right))
    for (source, target), passages in zip(edges, found.passages, strict=True):
        bottom = found.centres[source][1]
        for x, top, lower in passages:
            assert bottom < top <= lower
            bottom = lower
            spans[round((top + lower) / 2, 3)].append((x, x))
        assert bottom < found.centres[target][1]
    for row in spans.values():
        for (_, right), (left, _) in pairwise(sorted(row)):
            assert left - right >= GAP[0] - 1e-6


@given(graphs())
def test_arrows_lead_downwards_and_nothing_overlaps(
    graph: tuple[list[float], list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    heights, rooms, edges = graph
    found = place(heights, rooms, edges, GAP)
    check(found, heights, rooms, edges)
    assert place(heights, rooms, edges, GAP) == found


def same(count: int) -> tuple[list[float], list[tuple[float, float]]]:
    return [20.0] * count, [(30.0, 30.0)] * count


def test_a_chain_is_a_line() -> None:
    found = place(*same(5), [(i, i + 1) for i in range(4)], GAP)
    assert len({x for x, _ in found.centres}) == 1
    assert found.height == 5 * 20 + 4 * 40


def test_what_is_skipped_stays_a_line_and_the_arrow_runs_beside_it() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    found = place(*same(5), edges, GAP)
    assert len({round(x, 6) for x, _ in found.centres}) == 1
    (skip,) = (passages for passages in found.passages if passages)
    assert len({round(x, 6) for x, _, _ in skip}) == 1
    assert abs(skip[0][0] - found.centres[0][0]) == pytest.approx(30 + 20)


def test_crossings_are_undone() -> None:
    edges = [(0, 5), (1, 4), (2, 3)]
    found = place(*same(6), edges, GAP)
    tops, bottoms = [found.centres[a][0] for a, _ in edges], [found.centres[b][0] for _, b in edges]
    assert sorted(tops) == [x for _, x in sorted(zip(bottoms, tops, strict=True))]


def test_a_source_stands_above_its_reader() -> None:
    found = place(*same(5), [(0, 1), (1, 2), (2, 3), (4, 3)], GAP)
    assert found.centres[4][1] == found.centres[2][1]


def test_nothing_to_place() -> None:
    assert place([], [], [], GAP) == Layout((), (), 0.0, 0.0)


def test_too_much_to_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MOST_PLACES", 10)
    with pytest.raises(TooLarge, match="more than 10"):
        place(*same(8), [*((i, i + 1) for i in range(7)), (0, 7)], GAP)
    with pytest.raises(TooLarge, match="more than 10"):
        place(*same(11), [], GAP)
