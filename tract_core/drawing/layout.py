"""Where the boxes of a picture go: in layers, every arrow downwards, few crossings, long arrows straight.

The method is that of Sugiyama, Tagawa and Toda (Methods for Visual Understanding of Hierarchical System Structures,
1981): layers by longest paths, places in a layer by medians of the neighbours, in sweeps. Arrows that pass layers have
a place in each of them. Positions are the nearest to the medians of the neighbours at which nothing overlaps, found
for a layer at a time by isotonic regression; what nearly stands in line is then put in line, as Brandes and Koepf align
it (Fast and Simple Horizontal Coordinate Assignment, 2001).
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from tract_core.frozen import frozen

Point = tuple[float, float]
Edge = tuple[int, int]

SWEEPS: Final = 12
"""How often places, and then positions, are looked at anew, downwards and upwards."""

STRAIGHT: Final = 8
"""How much more a part of a long arrow weighs than what joins it to a box."""

BENT: Final = 60.0
"""How far apart a box and the next may stand to be put in line."""

MOST_PLACES: Final = 20_000
"""Boxes and passages in all layers together: for more, this takes too long."""


@dataclass(slots=True)
class Cell:
    """A box, or the passage of an arrow through a layer. ``room``: what it needs to the left and to the right."""

    layer: int
    height: float = 0.0
    room: tuple[float, float] = (0.0, 0.0)
    passage: bool = False
    x: float = 0.0
    above: list[int] = field(default_factory=list[int])
    below: list[int] = field(default_factory=list[int])


@frozen
class Layout:
    """Positions of the middles of the boxes, and for each edge the passages of layers: x, top and bottom of each.

    ``centres``: these middles. ``width``, ``height``: of the whole picture.
    """

    centres: tuple[Point, ...]
    passages: tuple[tuple[tuple[float, float, float], ...], ...]
    width: float
    height: float


class TooLarge(ValueError):
    """The picture has more in it than can be placed in reasonable time."""


def place(
    heights: Sequence[float], rooms: Sequence[tuple[float, float]], edges: Sequence[Edge], gap: Point = (24.0, 40.0)
) -> Layout:
    """Place boxes, given their heights and what they need to the left and right of their middles.

    ``edges``: from box to box, without circles. ``gap``: between neighbours, and between layers. Raises TooLarge.
    """
    if len(heights) > MOST_PLACES:
        raise TooLarge(f"there are more than {MOST_PLACES} boxes to place")
    layers = _layers(len(heights), edges)
    cells = [Cell(layer, height, room) for layer, height, room in zip(layers, heights, rooms, strict=True)]
    chains = [_chain(cells, edge) for edge in edges]
    rows = _ordered(cells)
    _position(cells, rows, gap[0])
    left = min((cell.x - cell.room[0] for cell in cells), default=0.0)
    tops, bottoms = _levels(cells, rows, gap[1])
    centres = tuple((cell.x - left, (tops[cell.layer] + bottoms[cell.layer]) / 2) for cell in cells[: len(heights)])
    passages = tuple(
        tuple((cells[one].x - left, tops[cells[one].layer], bottoms[cells[one].layer]) for one in chain)
        for chain in chains
    )
    width = max((cell.x + cell.room[1] for cell in cells), default=0.0) - left
    return Layout(centres, passages, width, bottoms[-1] if bottoms else 0.0)


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """A layer for each box, below all it reads. Boxes with more readers than sources stand right above a reader."""
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        below[source].append(target)
        above[target].append(source)
    order = _topological(above, below)
    layers = [0] * count
    for box in order:
        layers[box] = max((layers[source] + 1 for source in above[box]), default=0)
    for box in reversed(order):
        if below[box] and len(below[box]) > len(above[box]):
            layers[box] = min(layers[target] for target in below[box]) - 1
    return layers


def _topological(above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[int]:
    missing = [len(sources) for sources in above]
    order = [box for box, count in enumerate(missing) if count == 0]
    for box in order:
        for target in below[box]:
            missing[target] -= 1
            if missing[target] == 0:
                order.append(target)
    return order


def _chain(cells: list[Cell], edge: Edge) -> list[int]:
    """The passages of an edge through the layers between its ends, added to the cells."""
    source, target = edge
    chain: list[int] = []
    last = source
    for layer in range(cells[source].layer + 1, cells[target].layer):
        if len(cells) >= MOST_PLACES:
            raise TooLarge(f"there are more than {MOST_PLACES} boxes and passages to place")
        cells.append(Cell(layer, passage=True))
        chain.append(len(cells) - 1)
        _join(cells, last, chain[-1])
        last = chain[-1]
    _join(cells, last, target)
    return chain


def _join(cells: list[Cell], upper: int, lower: int) -> None:
    cells[upper].below.append(lower)
    cells[lower].above.append(upper)


def _ordered(cells: list[Cell]) -> list[list[int]]:
    """The cells of each layer, from left to right: the order with the fewest crossings that was met."""
    rows: list[list[int]] = [[] for _ in range(max((cell.layer for cell in cells), default=-1) + 1)]
    for number in _by_paths(cells):
        rows[cells[number].layer].append(number)
    best, fewest = [list(row) for row in rows], _crossings(cells, rows)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        places = {number: place for row in rows for place, number in enumerate(row)}
        for row in rows if down else reversed(rows):
            wanted = {number: _place(cells[number], places, number, down=down) for number in row}
            row.sort(key=wanted.__getitem__)
            places.update({number: place for place, number in enumerate(row)})
        crossings = _crossings(cells, rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _by_paths(cells: list[Cell]) -> list[int]:
    """All cells, those of a path together: first come neighbours by boxes, so that long arrows lie beside them."""
    seen = [False] * len(cells)
    order: list[int] = []
    for start in (number for number, cell in enumerate(cells) if not cell.above):
        stack = [start]
        while stack:
            number = stack.pop()
            if not seen[number]:
                seen[number] = True
                order.append(number)
                stack += sorted(cells[number].below, key=lambda one: not cells[one].passage)
    return order


def _crossings(cells: list[Cell], rows: Sequence[Sequence[int]]) -> int:
    """How many pairs of arrows cross: the inversions among their lower ends, in the order of their upper ends."""
    total = 0
    for upper, lower in pairwise(rows):
        places = {number: place for place, number in enumerate(lower)}
        tree = [0] * (len(lower) + 1)
        seen = 0
        for number in upper:
            ends = sorted(places[one] for one in cells[number].below)
            for end in ends:
                total += seen - _count(tree, end)
            for end in ends:
                _add(tree, end)
            seen += len(ends)
    return total


def _count(tree: list[int], last: int) -> int:
    """How many were added up to ``last``, in a binary indexed tree."""
    found, place = 0, last + 1
    while place:
        found += tree[place]
        place &= place - 1
    return found


def _add(tree: list[int], at: int) -> None:
    place = at + 1
    while place < len(tree):
        tree[place] += 1
        place += place & -place


def _place(cell: Cell, places: dict[int, int], number: int, *, down: bool) -> float:
    """The median of the places of its neighbours in the row before; where there are none, it stays."""
    neighbours = cell.above if down else cell.below
    return median([places[one] for one in neighbours] or [places[number]])


def _position(cells: list[Cell], rows: Sequence[Sequence[int]], gap: float) -> None:
    """Give every cell its x: near the medians of its neighbours, in the order of its row, without overlaps."""
    for row in rows:
        _settle(cells, row, [0.0] * len(row), [1.0] * len(row), gap)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wanted = [_wanted(cells, number, down=down, both=sweep >= SWEEPS - 2) for number in row]
            _settle(cells, row, [x for x, _ in wanted], [weight for _, weight in wanted], gap)
    _straighten(cells, rows, gap)


def _wanted(cells: list[Cell], number: int, *, down: bool, both: bool) -> tuple[float, float]:
    """Where a cell would like to be, and how much."""
    cell = cells[number]
    weighted: list[tuple[float, int]] = []
    if down or both:
        weighted += [(cells[one].x, _weight(cells[one], cell)) for one in cell.above]
    if both or not down:
        weighted += [(cells[one].x, _weight(cell, cells[one])) for one in cell.below]
    if not weighted:
        return cell.x, 0.1
    return _weighted_median(weighted), float(sum(weight for _, weight in weighted))


def _weight(upper: Cell, lower: Cell) -> int:
    """What an arrow between two cells weighs: passages stay in line, and what goes on before what begins or ends."""
    if upper.passage and lower.passage:
        return STRAIGHT
    goes_on = bool(upper.above and lower.below)
    return STRAIGHT // 2 if goes_on and not (upper.passage or lower.passage) else 1


def _weighted_median(weighted: Iterable[tuple[float, int]]) -> float:
    ordered = sorted(weighted)
    half, below = sum(weight for _, weight in ordered) / 2, 0.0
    for place, (x, weight) in enumerate(ordered):
        below += weight
        if below > half or place == len(ordered) - 1:
            return x
        if below == half:
            return (x + ordered[place + 1][0]) / 2
    return 0.0


def _settle(cells: list[Cell], row: Sequence[int], wanted: list[float], weights: list[float], gap: float) -> None:
    """The positions nearest to those wanted, by weighted squares, at which neighbours keep their distance.

    With the distances taken off they must not decrease: that is isotonic regression, by pooling neighbours that do.
    """
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + _distance(cells[left], cells[right], gap))
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for x, weight, taken in zip(wanted, weights, offsets, strict=True):
        pool = (x - taken, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, mass, count = pools.pop()
            together = mass + pool[1]
            pool = ((mean * mass + pool[0] * pool[1]) / together, together, count + pool[2])
        pools.append(pool)
    means = [mean for mean, _, count in pools for _ in range(count)]
    for number, mean, taken in zip(row, means, offsets, strict=True):
        cells[number].x = mean + taken


def _distance(left: Cell, right: Cell, gap: float) -> float:
    return left.room[1] + gap + right.room[0]


def _straighten(cells: list[Cell], rows: Sequence[Sequence[int]], gap: float) -> None:
    """Put what nearly stands in line in line: every chain of aligned cells gets one x, and overlaps are pushed apart.

    Alignments do not cross, so chains are beside each other: there is an order of them from left to right.
    """
    chain_of = list(range(len(cells)))
    for upper, lower in pairwise(rows):
        for above, below in _aligned(cells, upper, lower):
            chain_of[below] = chain_of[above]
    members: dict[int, list[int]] = {}
    for number, chain in enumerate(chain_of):
        members.setdefault(chain, []).append(number)
    x = {chain: median(cells[one].x for one in inside) for chain, inside in members.items()}
    pairs = {(chain_of[a], chain_of[b]): 0.0 for row in rows for a, b in pairwise(row)}
    for row in rows:
        for left, right in pairwise(row):
            pair = chain_of[left], chain_of[right]
            pairs[pair] = max(pairs[pair], _distance(cells[left], cells[right], gap))
    order = _left_to_right(members, pairs)
    ranked = sorted(pairs, key=lambda pair: order[pair[0]])
    for _ in range(SWEEPS):
        _relax(x, ranked, pairs, {chain: len(inside) for chain, inside in members.items()})
    for left, right in ranked:  # what is left of overlaps goes to the right
        x[right] = max(x[right], x[left] + pairs[left, right])
    for number, chain in enumerate(chain_of):
        cells[number].x = x[chain]


def _aligned(cells: list[Cell], upper: Sequence[int], lower: Sequence[int]) -> list[Edge]:
    """Pairs of cells of two rows to put in line: the heaviest, then the nearest, no two that cross or meet."""
    above = {number: place for place, number in enumerate(upper)}
    below = {number: place for place, number in enumerate(lower)}
    links: set[tuple[float, float, int, int]] = set()
    for number in upper:
        for other in cells[number].below:
            weight, bent = _weight(cells[number], cells[other]), abs(cells[number].x - cells[other].x)
            if weight == STRAIGHT or bent <= BENT:
                links.add((-weight, bent, number, other))
    taken: list[tuple[int, int]] = []
    found: list[Edge] = []
    for _, _, number, other in sorted(links):
        at, to = above[number], below[other]
        place = bisect(taken, (at, to))
        before, behind = taken[place - 1] if place else (-1, -1), taken[place] if place < len(taken) else None
        if before[0] < at and before[1] < to and (behind is None or (at < behind[0] and to < behind[1])):
            taken.insert(place, (at, to))
            found.append((number, other))
    return found


def _left_to_right(chains: Iterable[int], pairs: Iterable[Edge]) -> dict[int, int]:
    """The place of each chain in an order in which the left one of every pair comes first."""
    names = list(chains)
    index = {chain: place for place, chain in enumerate(names)}
    above: list[list[int]] = [[] for _ in names]
    below: list[list[int]] = [[] for _ in names]
    for left, right in pairs:
        below[index[left]].append(index[right])
        above[index[right]].append(index[left])
    return {names[place]: rank for rank, place in enumerate(_topological(above, below))}


def _relax(x: dict[int, float], order: Sequence[Edge], pairs: Mapping[Edge, float], masses: Mapping[int, int]) -> None:
    """Push apart neighbours that are too close, the shorter chain more than the longer one."""
    for left, right in order:
        missing = x[left] + pairs[left, right] - x[right]
        if missing > 0:
            share = masses[right] / (masses[left] + masses[right])
            x[left] -= missing * share
            x[right] += missing * (1 - share)


def _levels(cells: list[Cell], rows: Sequence[Sequence[int]], gap: float) -> tuple[list[float], list[float]]:
    """Top and bottom of each layer."""
    tops: list[float] = []
    bottoms: list[float] = []
    top = 0.0
    for row in rows:
        tops.append(top)
        bottoms.append(top + max((cells[number].height for number in row), default=0.0))
        top = bottoms[-1] + gap
    return tops, bottoms
