"""What a page is given: JSON in pieces, so that it shows the first stage before it has read the others.

``summary`` is what all stages have in common, ``constants`` the table that they refer to, ``stage-0`` ... the stages.
Texts stand once in each piece, and are referred to by number; nodes are columns. ``page/model.js`` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from tract_core.frozen import frozen
from tract_core.version import version
from tract_view.groups import Tree, tree_of
from tract_view.places import Placed, placed_groups
from tract_view.timing import Placing, Times, group_times

if TYPE_CHECKING:
    from tract_view.constants import ConstantTable
    from tract_view.entries import Entry
    from tract_view.snapshots import Snapshot

KINDS = ("input", "node", "constant", "output")


@frozen
class Document:
    """What a page shows. ``title``: of the model. ``pieces``: texts of JSON, by name."""

    title: str
    pieces: dict[str, str]


def document_of(
    title: str, snapshots: Sequence[Snapshot], constants: ConstantTable, remarks: Sequence[str] = ()
) -> Document:
    """All that is known of a model, as a page takes it. ``remarks``: what to tell whoever looks."""
    pieces: dict[str, str] = {}
    stages: list[dict[str, Any]] = []
    for number, snapshot in enumerate(snapshots):
        tree = tree_of(snapshot.entries)
        pieces[f"stage-{number}"] = _text(_stage(snapshot, tree))
        nodes = sum(entry.kind == "node" for entry in snapshot.entries)
        stages.append({"name": snapshot.stage, "nodes": nodes, "groups": len(tree.groups) - 1})
    summary = {"title": title, "version": version(), "stages": stages, "remarks": list(remarks)}
    pieces["summary"] = _text(summary)
    pieces["constants"] = _text([astuple(one) for one in constants.summaries])
    return Document(title, pieces)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


class _Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def _stage(snapshot: Snapshot, tree: Tree) -> dict[str, Any]:
    text, entries = _Texts(), snapshot.entries
    placed = [_placed(one, text) for one in placed_groups(entries, tree)]
    columns = _columns(entries, text)
    groups = [[text(one.title), text(one.name), one.parent, one.body, one.count, one.first] for one in tree.groups]
    return {
        **columns,
        "owner": tree.owner,
        "groups": groups,
        "placed": placed,
        "placings": _placings(snapshot.placings, text),
        "times": _times(snapshot.times, entries, tree),
        "texts": [*text.numbers],
    }


def _columns(entries: Sequence[Entry], text: _Texts) -> dict[str, Any]:
    return {
        "kind": [KINDS.index(entry.kind) for entry in entries],
        "name": [text(entry.name) for entry in entries],
        "op": [text(entry.op) for entry in entries],
        "around": [entry.around for entry in entries],
        "inputs": [[part for wire in entry.inputs for part in wire] for entry in entries],
        "facts": [[text(fact) for fact in entry.facts] for entry in entries],
        "attributes": [[text(part) for pair in entry.attributes for part in pair] for entry in entries],
        "constants": [
            [part for one in entry.constants for part in (one.slot, text(one.name), text(one.fact), one.number)]
            for entry in entries
        ],
    }


def _placed(one: Placed, text: _Texts) -> list[Any]:
    """Size, boxes and wires; positions in whole pixels."""
    boxes = [
        [box.kind, box.number, *map(round, (box.x, box.y, box.width, box.height)), *map(text, box.lines)]
        for box in one.boxes
    ]
    wires = [
        [w.source, w.target, w.tensors, int(w.back), *(round(x) for passage in w.passages for x in passage)]
        for w in one.wires
    ]
    return [round(one.width), round(one.height), boxes, wires]


def _placings(placings: dict[int, Placing], text: _Texts) -> list[Any]:
    return [[number, text(one.where), text(one.how), text(one.why), one.others] for number, one in placings.items()]


def _times(times: Times | None, entries: Sequence[Entry], tree: Tree) -> dict[str, Any] | None:
    if times is None:
        return None
    return {
        "runtime": times.runtime,
        "turn": times.turn,
        "nodes": times.nodes,
        "parts": [astuple(part) for part in times.parts],
        "groups": [astuple(one) for one in group_times(entries, tree, times.parts)],
    }
