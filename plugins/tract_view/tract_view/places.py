"""Where the boxes of each group go, each group for itself: in layers, as `tract_core.drawing` places them.

Every group is placed as if all groups in it were closed; a page that opens one pushes apart what is around it. Tensors
that come from outside of a group, and those that leave it, have boxes of their own in it: ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Literal

from tract_core.drawing.ink import width_of
from tract_core.drawing.layout import Layout, TooLarge, place
from tract_core.frozen import frozen
from tract_view.groups import EntryGroup, Item, Tree, around, as_group

if TYPE_CHECKING:
    from tract_view.entries import Entry

MOST_PORTS: Final = 6
"""Tensors that come into a group, or leave it, with a port each; of more, one port says how many."""

LONGEST: Final = 30
"""Characters of a line of a box."""

GAP: Final = (22.0, 34.0)
"""Pixels between neighbours, and between layers."""

TITLE: Final = 13.0
SMALL: Final = 10.0
"""Sizes of letters, in pixels."""

HEIGHTS: Final = {"entry": 50.0, "group": 62.0, "in": 22.0, "out": 22.0}
"""Pixels."""

Tensor = tuple[int, int]
"""The number of an entry, and which of its outputs."""

BoxKind = Literal["entry", "group", "in", "out"]
Key = tuple[BoxKind, int | Tensor | None]
"""What a box is of: the number of an entry or a group, the tensor of a port, ``None`` for a port of many tensors."""


_Way = list[tuple[Item, int]]
"""The groups that something is in, outwards, each with what holds it there."""


@frozen
class PlacedBox:
    """Something to draw in a group. ``number``: of the entry or group; of a port, of the entry of its tensor, or -1.

    ``kind``: which of these. ``lines``: what is written in it. ``x``, ``y``: its middle; ``width``, ``height``: its
    size, in pixels.
    """

    kind: BoxKind
    number: int
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


@frozen
class Wire:
    """An arrow between two boxes. ``tensors``: how many it stands for. ``back``: it leads upwards.

    ``source``, ``target``: the places of these boxes. ``passages``: x, top and bottom of each layer that it passes.
    """

    source: int
    target: int
    tensors: int
    back: bool
    passages: tuple[tuple[float, float, float], ...] = ()


@frozen
class Placed:
    """A group with all in it placed: ``boxes``, and ``wires`` between them. ``width``, ``height``: in pixels."""

    boxes: tuple[PlacedBox, ...]
    wires: tuple[Wire, ...]
    width: float
    height: float


@dataclass(slots=True)
class _Plan:
    """What there is to place in a group: items and ports, and between which of them tensors go."""

    items: list[Item]
    coming: dict[Tensor, None] = field(default_factory=dict[Tensor, None])
    leaving: dict[Tensor, None] = field(default_factory=dict[Tensor, None])
    wires: dict[tuple[Key, Key], set[Tensor]] = field(default_factory=dict[tuple[Key, Key], set[Tensor]])

    def join(self, source: Key, target: Key, tensor: Tensor) -> None:
        self.wires.setdefault((source, target), set()).add(tensor)


def placed_groups(entries: Sequence[Entry], tree: Tree) -> Iterator[Placed]:
    """Every group of a tree, in order."""
    known: dict[object, Layout] = {}
    plans = _plans(entries, tree)
    for plan in plans:
        yield _placed(plan, entries, tree, known)


def _plans(entries: Sequence[Entry], tree: Tree) -> list[_Plan]:
    plans = [_Plan(group.items) for group in tree.groups]
    ways = [_way(tree, number) for number in range(len(entries))]
    for target, entry in enumerate(entries):
        for source, slot, _ in entry.inputs:
            _route(plans, ways[source], ways[target], (source, slot))
    return plans


def _route(plans: list[_Plan], here: _Way, there: _Way, tensor: Tensor) -> None:
    """Lead a tensor out of the groups that its source is in, and into those that its target is in."""
    inside = {group for _, group in there}
    shared = next(group for _, group in here if group in inside)
    for item, group in here:
        if group == shared:
            break
        plans[group].leaving[tensor] = None
        plans[group].join(item, ("out", tensor), tensor)
    at = next(item for item, group in here if group == shared)
    for item, group in there:
        if group == shared:
            plans[group].join(at, item, tensor)
            break
        plans[group].coming[tensor] = None
        plans[group].join(("in", tensor), item, tensor)


def _way(tree: Tree, entry: int) -> _Way:
    """What holds an entry in each of the groups that it is in, outwards. What runs a body is the body's box."""
    owner = tree.owner[entry]
    item: Item = ("entry", entry)
    if tree.groups[owner].body == entry:
        item, owner = as_group(owner), tree.groups[owner].parent
    way: _Way = []
    for group in around(tree, owner):
        way.append((item, group))
        item = as_group(group)
    return way


def _placed(plan: _Plan, entries: Sequence[Entry], tree: Tree, known: dict[object, Layout]) -> Placed:
    keys, lines = _boxes(plan, entries, tree)
    place_of: dict[Key, int] = {key: number for number, key in enumerate(keys)}
    merged: dict[tuple[int, int], set[Tensor]] = {}
    for (source, target), tensors in plan.wires.items():
        ends = _end(place_of, source, "in"), _end(place_of, target, "out")
        merged.setdefault(ends, set()).update(tensors)
    back = _backwards(len(keys), [*merged])
    edges = [(b, a) if (a, b) in back else (a, b) for a, b in merged]
    sizes = [_size(key, one) for key, one in zip(keys, lines, strict=True)]
    layout = _laid_out(sizes, edges, known)
    boxes = tuple(
        PlacedBox(key[0], _number(key), one, *centre, *size)
        for key, one, centre, size in zip(keys, lines, layout.centres, sizes, strict=True)
    )
    wires = tuple(
        Wire(a, b, len(tensors), (a, b) in back, passages)
        for ((a, b), tensors), passages in zip(merged.items(), layout.passages, strict=True)
    )
    return Placed(boxes, wires, layout.width, layout.height)


def _end(place_of: dict[Key, int], key: Key, side: BoxKind) -> int:
    """The box of a key; of a port that was merged with others, that of all of them."""
    found = place_of.get(key)
    return place_of[side, None] if found is None else found


def _boxes(plan: _Plan, entries: Sequence[Entry], tree: Tree) -> tuple[list[Key], list[tuple[str, ...]]]:
    """The keys of all boxes, and what is written in each."""
    coming, leaving = _ports(plan.coming, "in"), _ports(plan.leaving, "out")
    keys: list[Key] = [*coming, *plan.items, *leaving]
    lines = [
        *(_port_line(key, entries, len(plan.coming)) for key in coming),
        *(_item_lines(item, entries, tree) for item in plan.items),
        *(_port_line(key, entries, len(plan.leaving)) for key in leaving),
    ]
    return keys, lines


def _ports(tensors: dict[Tensor, None], side: Literal["in", "out"]) -> list[tuple[Literal["in", "out"], Tensor | None]]:
    if len(tensors) > MOST_PORTS:
        return [(side, None)]
    return [(side, tensor) for tensor in tensors]


def _port_line(key: tuple[str, Tensor | None], entries: Sequence[Entry], count: int) -> tuple[str, ...]:
    side, tensor = key
    if tensor is None:
        return (f"{count} tensors come in" if side == "in" else f"{count} tensors leave",)
    entry, slot = entries[tensor[0]], tensor[1]
    return (shortened(f"{entry.name}:{slot}" if slot else entry.name),)


def _item_lines(item: Item, entries: Sequence[Entry], tree: Tree) -> tuple[str, ...]:
    kind, number = item
    if kind == "entry":
        entry = entries[number]
        fact = entry.facts[0] if entry.facts else ""
        more = f" and {len(entry.facts) - 1} more" if len(entry.facts) > 1 else ""
        own = leaf_of(entry.name, tree.groups[tree.owner[number]])
        title, name = (entry.op, own) if entry.kind in ("node", "constant") else (entry.name, entry.kind)
        return shortened(title), shortened(name), shortened(f"{fact}{more}")
    return _group_lines(tree.groups[number], entries)


def _group_lines(group: EntryGroup, entries: Sequence[Entry]) -> tuple[str, ...]:
    nodes = f"{group.count} node{'s' if group.count != 1 else ''}" if group.count else "inputs and outputs"
    if group.body >= 0:
        nodes = f"body of {entries[group.body].op}, {nodes}"
    ops = ", ".join(f"{op} ×{count}" if count > 1 else op for op, count in group.ops.most_common(3))
    return shortened(group.title), shortened(nodes), shortened(ops)


def leaf_of(name: str, group: EntryGroup) -> str:
    """A name as it is told from others in a group: without what the group's own name says."""
    if group.parent == -1:
        return name
    if "/" in name:
        return name.rpartition("/")[2]
    prefix = f"{group.name.partition('#')[0].replace('/', '.')}."
    return name.removeprefix(prefix)


def shortened(text: str) -> str:
    """A text that fits into a box: of a long one the end more than the beginning, as it tells names apart."""
    return text if len(text) <= LONGEST else f"{text[:9]}…{text[-(LONGEST - 10) :]}"


def _number(key: Key) -> int:
    number = key[1]
    if isinstance(number, int):
        return number
    return -1 if number is None else number[0]


_width = lru_cache(maxsize=1 << 16)(width_of)


def _size(key: Key, lines: tuple[str, ...]) -> tuple[float, float]:
    letters = (TITLE if place == 0 and key[0] in ("entry", "group") else SMALL for place in range(len(lines)))
    width = max(_width(text, size) for text, size in zip(lines, letters, strict=True))
    return max(width + 20, 60.0), HEIGHTS[key[0]]


def _backwards(count: int, edges: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The edges to turn around so that no circle is left: those to a box that has its place already.

    Boxes get their places as soon as all that they read have one; where none is ready, the first that is left.
    """
    missing, below = [0] * count, [list[int]() for _ in range(count)]
    for source, target in edges:
        missing[target] += 1
        below[source].append(target)
    ready: list[int] = [box for box in range(count) if missing[box] == 0]
    left, rank = dict.fromkeys(range(count)), list(range(count))
    order = 0
    while left:
        box = heappop(ready) if ready else next(iter(left))
        if box not in left:
            continue
        del left[box]
        rank[box], order = order, order + 1
        for target in below[box]:
            missing[target] -= 1
            if missing[target] == 0 and target in left:
                heappush(ready, target)
    return {(a, b) for a, b in edges if rank[a] >= rank[b]}


def _laid_out(
    sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]], known: dict[object, Layout]
) -> Layout:
    """Where boxes go; groups with the same boxes and arrows, as repeated layers have, are placed once."""
    key = (tuple(sizes), tuple(edges))
    found = known.get(key)
    if found is None:
        try:
            found = place([h for _, h in sizes], [(w / 2, w / 2) for w, _ in sizes], edges, GAP)
        except TooLarge:  # no more than some boxes are in a group, so arrows are what is too many
            found = place([h for _, h in sizes], [(w / 2, w / 2) for w, _ in sizes], [], GAP)
        known[key] = found
    return found
