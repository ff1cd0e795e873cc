"""Plots of plain characters, 78 of them in a line at the most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tract_inferers.cli.axes import PlotAxis, written

WIDTH: Final = 64
HEIGHT: Final = 12
"""Of the area in which points are, in characters."""

Point = tuple[float, float]


def plotted(points: Sequence[Point], *, x_title: str, y_title: str) -> list[str]:
    """The lines of a plot: a ``*`` for each point, ``.`` between them. Points have different, growing x."""
    points = sorted(points)
    across, up = PlotAxis.over([x for x, _ in points]), PlotAxis.over([y for _, y in points], from_zero=True)
    cells = [(_cell(across.share(x), WIDTH), _cell(up.share(y), HEIGHT)) for x, y in points]
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for (left, first), (right, last) in pairwise(cells):
        for column in range(left + 1, right):
            grid[round(first + (last - first) * (column - left) / (right - left))][column] = "."
    for column, row in cells:
        grid[row][column] = "*"
    labels = {_cell(up.share(tick), HEIGHT): written(tick) for tick in up.ticks(HEIGHT // 2)}
    edge = max(map(len, labels.values()))
    lines = [
        f"{labels.get(row, ''):>{edge}} {'+' if row in labels else '|'}{''.join(grid[row])}".rstrip()
        for row in reversed(range(HEIGHT))
    ]
    bottom = f"{' ' * edge} +{'-' * WIDTH}"
    places = [(_cell(across.share(x), WIDTH), written(x)) for x, _ in points]
    return [
        f"{y_title}{_kind(up)}",
        *lines,
        bottom,
        f"{' ' * (edge + 2)}{_beside(places)}",
        f"{x_title}{_kind(across)}".rjust(edge + 2 + WIDTH),
    ]


def _beside(places: Sequence[tuple[int, str]]) -> str:
    """Labels below their columns, without those that would touch the one before."""
    line = ""
    for column, text in places:
        start = max(column - len(text) // 2, 0)
        if start > len(line) or not line:
            line = f"{line:<{start}}{text}"
    return line


def _cell(share: float, count: int) -> int:
    return min(max(int(share * count), 0), count - 1)


def _kind(axis: PlotAxis) -> str:
    return " (logarithmic)" if axis.log else ""
