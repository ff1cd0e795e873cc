"""How long nodes take and what computes them, in the model that runs, and what that makes for each group.

Nodes that a runtime fuses have one time together. It counts for the group of the one of them that has most to do, so
that the times of all groups add up to that of the model; where others of them are elsewhere, that is said: ``shared``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tract_core.frozen import frozen
from tract_view.entries import short

if TYPE_CHECKING:
    from tract_core.runtime.explain import Explanation
    from tract_core.runtime.parts import BodyPath
    from tract_view.entries import Entry
    from tract_view.groups import Tree


@frozen
class Placing:
    """What computes a node: ``where``, on which device; ``how``, by what; ``why`` there.

    ``others``: the numbers of the entries that are computed with it.
    """

    where: str
    how: str
    why: str
    others: tuple[int, ...] = ()


@frozen
class TimedPart:
    """Entries that are timed together. ``main``: the one with most to do. ``seconds``: of a turn.

    ``entries``: their numbers. ``gflop_per_s``, ``gb_per_s``: how fast that is, where it is known.
    """

    entries: tuple[int, ...]
    main: int
    seconds: float
    gflop_per_s: float | None = None
    gb_per_s: float | None = None


@frozen
class GroupTime:
    """The time of a group: ``seconds``, and the next two, of a turn.

    ``shared``: what of it nodes of other groups have a part in. ``elsewhere``: what counts for other groups, and nodes
    of this one have a part in.
    """

    seconds: float = 0.0
    shared: float = 0.0
    elsewhere: float = 0.0


@frozen
class Times:
    """``turn``: seconds of a whole turn; ``nodes``: of all nodes together. ``runtime``: where it was measured.

    ``parts``: what was timed, each once.
    """

    runtime: str
    turn: float
    nodes: float
    parts: tuple[TimedPart, ...] = ()


Places = Mapping[tuple["BodyPath", int], int]
"""The number of the entry of each node of a model and its bodies."""


def placings_of(entries: Sequence[Entry], explanation: Explanation) -> dict[int, Placing]:
    """What computes each entry, by its number, as a runtime explains it."""
    numbers = _numbers(entries)
    found: dict[int, Placing] = {}
    for one in explanation.placements:
        inside = [numbers[one.part.body, node] for node in one.part.nodes if (one.part.body, node) in numbers]
        for number in inside:
            others = tuple(other for other in inside if other != number)
            found[number] = Placing(short(one.where), short(one.how), short(one.why), others)
    return found


def times_of(entries: Sequence[Entry], profile: str, runtime: str) -> Times:
    """What a profile says of entries. ``profile``: of a model that ran, as `tract_core.Runnable.profile_json` is."""
    timed = json.loads(profile)
    numbers, costs = _numbers(entries), _costs(timed)
    parts = [part for one in _timed(timed) if (part := _part(one, numbers, costs)) is not None]
    info = timed["profiling_info"]
    whole = sum(part.seconds for part in parts if entries[part.main].around == -1)
    return Times(runtime, info["median_secs_per_iter"], whole, tuple(parts))


def _numbers(entries: Sequence[Entry]) -> Places:
    return {entry.place: number for number, entry in enumerate(entries) if entry.kind != "output"}


def _key(qualified: Sequence[Any]) -> tuple[BodyPath, int]:
    path, node = qualified
    return tuple((at, number) for at, number in path), node


def _costs(timed: Mapping[str, Any]) -> dict[tuple[BodyPath, int], float]:
    """About how much each node has to do, for comparison with those that it is fused with."""
    return {_key(one["qualified_id"]): _operations(one["cost"]) for one in timed["nodes"]}


def _operations(cost: Mapping[str, str]) -> float:
    """Counted operations; more than any number where they depend on sizes, as only the main work does."""
    counts = [count for kind, count in cost.items() if not kind.startswith("PARAMS")]
    return sum(float(count) if count.isdecimal() else 1e30 for count in counts)


def _timed(timed: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (one for one in timed["nodes"] if one["secs_per_iter"] is not None)
    yield from timed["groups"]


def _part(one: Mapping[str, Any], numbers: Places, costs: Mapping[tuple[BodyPath, int], float]) -> TimedPart | None:
    """``None`` where nothing of it is shown, as of constants that are computed when the model is prepared."""
    ids = [_key(key) for key in one.get("qualified_ids", [one.get("qualified_id")])]
    shown = [key for key in ids if key in numbers]
    if not shown:
        return None
    main = max(shown, key=lambda key: costs.get(key, 0.0))
    inside = tuple(numbers[key] for key in shown)
    return TimedPart(inside, numbers[main], one["secs_per_iter"], one.get("gflop_per_s"), one.get("gb_per_s"))


def group_times(entries: Sequence[Entry], tree: Tree, parts: Sequence[TimedPart]) -> list[GroupTime]:
    """The time of each group of a tree. That of a body is that of the node that runs it."""
    sums = [[0.0, 0.0, 0.0] for _ in tree.groups]
    for part in parts:
        ways = {number: _outwards(entries, tree, number) for number in part.entries}
        main = ways[part.main]
        for group in {group for way in ways.values() for group in way}:
            whole = all(group in way for way in ways.values())
            mine = group in main
            sums[group][0] += part.seconds if mine else 0.0
            sums[group][1] += part.seconds if mine and not whole else 0.0
            sums[group][2] += 0.0 if mine else part.seconds
    return [GroupTime(*one) for one in sums]


def _outwards(entries: Sequence[Entry], tree: Tree, number: int) -> set[int]:
    """The groups that an entry counts for: up to the body that it is in, whose time its node has."""
    found: set[int] = set()
    at = tree.owner[number]
    while at != -1:
        body = tree.groups[at].body
        if body not in (-1, number) and body == entries[number].around:
            break
        found.add(at)
        at = tree.groups[at].parent
    return found
