"""The tree of groups: by names, by bodies, and where neither makes a group small enough to be seen, by parts.

A part is a run of what is in a group, in order of execution, cut where few tensors pass. So also a model
without a single telling name opens as some boxes, and no group is one endless column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

from tract_view.names import paths_of

if TYPE_CHECKING:
    from tract_view.entries import Entry

MOST: Final = 48
"""What a group holds at most."""
PART: Final = 24
"""About how much a part holds."""
SCATTERED: Final = 8
"""So many entries of one name, none of which reads another, are no group."""

Item = tuple[Literal["entry", "group"], int]


@dataclass(slots=True)
class EntryGroup:
    """Some entries, and groups, that are shown as one box. ``name``: the whole way to it; ``title``: its last part.

    ``parent``: the number of the group that it is in, -1 for the outermost. ``body``: the number of the entry that runs
    it, -1 where it is no body. ``items``: what it holds, in order of execution. ``first``: its first entry; ``count``,
    ``ops``: how many nodes are in it at any depth, and how many of each operator.
    """

    title: str
    name: str
    parent: int
    body: int = -1
    items: list[Item] = field(default_factory=list[Item])
    first: int = 0
    count: int = 0
    ops: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True)
class Tree:
    """``groups``: the outermost first, each before those in it. ``owner``: for each entry, the group that it is in."""

    groups: list[EntryGroup]
    owner: list[int]


@dataclass(slots=True)
class _Named:
    """A group by names while they are read."""

    entries: list[int] = field(default_factory=list[int])
    inner: dict[str, _Named] = field(default_factory=dict)

    def size(self) -> int:
        return len(self.entries) + len(self.inner)


def tree_of(entries: Sequence[Entry]) -> Tree:
    """The groups of a model."""
    tree = Tree([EntryGroup("", "", -1)], [0] * len(entries))
    inside: dict[int, list[int]] = {}
    for number, entry in enumerate(entries):
        inside.setdefault(entry.around, []).append(number)
    bodies: dict[int, int] = {-1: 0}
    for around in sorted(inside):  # the entry that runs a body comes before those in it
        if around != -1:
            bodies[around] = _opened(tree, entries, around)
        _fill(tree, bodies[around], _named(entries, inside[around]), entries)
    _divide_all(tree, entries)
    _sum_up(tree, entries)
    return tree


def _opened(tree: Tree, entries: Sequence[Entry], around: int) -> int:
    """A new group in the place of an entry that runs bodies."""
    owner = tree.owner[around]
    group = EntryGroup(entries[around].name, entries[around].name, owner, around)
    tree.groups.append(group)
    items = tree.groups[owner].items
    items[items.index(("entry", around))] = ("group", len(tree.groups) - 1)
    tree.owner[around] = len(tree.groups) - 1
    return len(tree.groups) - 1


def _named(entries: Sequence[Entry], numbers: Sequence[int]) -> _Named:
    root = _Named()
    for number, path in zip(numbers, paths_of({one: entries[one] for one in numbers}), strict=True):
        at = root
        for part in path:
            at = at.inner.setdefault(part, _Named())
        at.entries.append(number)
    return root


def _fill(tree: Tree, owner: int, named: _Named, entries: Sequence[Entry]) -> None:
    """Put what a group by names holds into a group of the tree: groups of what does not hang together are left out."""
    for number in named.entries:
        _put(tree, owner, number)
    for part, inner in named.inner.items():
        path, last = _merged(part, inner)
        if _hangs_apart(last, entries):
            for number in last.entries:
                _put(tree, owner, number)
            continue
        name = "/".join(filter(None, [tree.groups[owner].name, *path]))
        tree.groups.append(EntryGroup("/".join(path), name, owner))
        tree.groups[owner].items.append(("group", len(tree.groups) - 1))
        _fill(tree, len(tree.groups) - 1, last, entries)


def _hangs_apart(named: _Named, entries: Sequence[Entry]) -> bool:
    """Whether a group holds one entry, or some that give each other nothing: calls of one module in several places."""
    if named.inner or len(named.entries) > SCATTERED:
        return False
    inside = set(named.entries)
    return not any(source in inside for number in inside for source, _, _ in entries[number].inputs)


def _merged(part: str, named: _Named) -> tuple[list[str], _Named]:
    """A group, or the first in it that holds more than one other group, with the way there."""
    path = [part]
    while not named.entries and len(named.inner) == 1:
        ((one, named),) = named.inner.items()
        path.append(one)
    return path, named


def _put(tree: Tree, owner: int, number: int) -> None:
    tree.owner[number] = owner
    tree.groups[owner].items.append(("entry", number))


def _divide_all(tree: Tree, entries: Sequence[Entry]) -> None:
    """Cut groups that hold too much into parts, and these again while there are too many."""
    first = _firsts(tree)
    for number in range(len(tree.groups)):
        tree.groups[number].items.sort(key=lambda item: item[1] if item[0] == "entry" else first[item[1]])
        while len(tree.groups[number].items) > MOST:
            _divide(tree, number, entries)


def _firsts(tree: Tree) -> list[int]:
    """The first entry of each group, at any depth."""
    first = [len(tree.owner)] * len(tree.groups)
    for number in range(len(tree.groups) - 1, -1, -1):
        group = tree.groups[number]
        own = [one if kind == "entry" else first[one] for kind, one in group.items]
        own += [group.body] * (group.body >= 0)
        first[number] = min(own) if own else len(tree.owner)
    return first


def _divide(tree: Tree, number: int, entries: Sequence[Entry]) -> None:
    group = tree.groups[number]
    items, group.items = group.items, []
    cuts = _cuts(_crossing(tree, number, items, entries), len(items))
    for begin, end in zip([0, *cuts], [*cuts, len(items)], strict=True):
        title = f"{begin + 1} to {end} of {len(items)}"
        tree.groups.append(EntryGroup(title, f"{group.name}#{begin + 1}-{end}", number))
        part = tree.groups[-1]
        part.items = items[begin:end]
        group.items.append(("group", len(tree.groups) - 1))
        for kind, one in part.items:
            if kind == "entry":
                tree.owner[one] = len(tree.groups) - 1
            else:
                tree.groups[one].parent = len(tree.groups) - 1


def _crossing(tree: Tree, number: int, items: Sequence[Item], entries: Sequence[Entry]) -> list[int]:
    """How many tensors pass between each item and the next: from where they are made to where they are read last."""
    place_of = {item: place for place, item in enumerate(items)}
    last: dict[tuple[int, int], int] = {}
    for target in _entries_in(tree, items):
        there = place_of[_item_in(tree, number, target)]
        for source, slot, _ in entries[target].inputs:
            last[source, slot] = max(last.get((source, slot), 0), there)
    changes = [0] * (len(items) + 1)
    for (source, _), there in last.items():
        here = place_of.get(_item_in(tree, number, source), 0)  # what comes from outside is there from the beginning
        changes[here] += here < there
        changes[there] -= here < there
    return list(accumulate(changes[:-1]))


def _entries_in(tree: Tree, items: Iterable[Item]) -> Iterable[int]:
    """The entries of some items, at any depth, but for those that run bodies."""
    stack = list(items)
    while stack:
        kind, number = stack.pop()
        if kind == "entry":
            yield number
        else:
            stack += tree.groups[number].items


def _item_in(tree: Tree, number: int, entry: int) -> Item:
    """What holds an entry directly in a group; ``("group", -1)`` where it is not in it."""
    item: Item = ("entry", entry)
    owner = tree.owner[entry]
    while owner not in (number, -1):
        item, owner = as_group(owner), tree.groups[owner].parent
    return item if owner == number else as_group(-1)


def as_group(number: int) -> Item:
    """A group as it is held by the one around it."""
    return "group", number


def _cuts(passing: Sequence[int], count: int) -> list[int]:
    """Where to cut: about every `PART` items, at the place near to that where the fewest tensors pass."""
    cuts: list[int] = []
    at = 0
    while count - at > PART * 3 // 2:
        window = range(at + PART // 2, min(at + PART * 3 // 2, count - 1))
        at = min(window, key=lambda place: (passing[place], abs(place - at - PART))) + 1
        cuts.append(at)
    return cuts


def _sum_up(tree: Tree, entries: Sequence[Entry]) -> None:
    """Order the groups, and tell each its first entry and what it holds."""
    _renumber(tree)
    for number, entry in enumerate(entries):
        for owner in around(tree, tree.owner[number]):
            group = tree.groups[owner]
            if entry.kind == "node":
                group.count += 1
                group.ops[entry.op] += 1
    for group, first in zip(tree.groups, _firsts(tree), strict=True):
        group.first = first


def around(tree: Tree, number: int) -> Iterable[int]:
    """A group, and those that it is in, outwards."""
    while number != -1:
        yield number
        number = tree.groups[number].parent


def _renumber(tree: Tree) -> None:
    """Groups in the order in which they are met from outside, as parts are made after what is in them."""
    order: list[int] = []
    stack = [0]
    while stack:
        number = stack.pop()
        order.append(number)
        stack += [one for kind, one in reversed(tree.groups[number].items) if kind == "group"]
    new = {old: place for place, old in enumerate(order)}
    tree.groups = [tree.groups[old] for old in order]
    tree.owner = [new[one] for one in tree.owner]
    for group in tree.groups:
        group.parent = new.get(group.parent, -1)
        group.items = [(kind, new[one]) if kind == "group" else (kind, one) for kind, one in group.items]
