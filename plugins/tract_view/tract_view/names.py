"""Which groups the names of nodes tell: ``/layer1/layer1.0/conv1/Conv`` is in ``layer1``, ``0``, ``conv1``.

Names of ONNX have slashes, with the path of the module once more in each part; those of PyTorch have points. Where
most nodes have neither, as in NNEF, the names of the weights that they read tell it: who reads the weight
``layer1.0.conv1.weight`` is in ``layer1.0.conv1``, and what stands between two such nodes is in what both are in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tract_view.entries import Entry

Path = tuple[str, ...]

DEEPEST: Final = 12
"""Groups in groups that names tell; of deeper ones, the last bears what is left."""

ENOUGH: Final = 0.25
"""Where fewer of the nodes than this have a group in their names, the names of weights are asked."""

_PART: Final = re.compile(r"[\w\-\[\]:]+")


def path_of(name: str, names: Collection[str]) -> Path:
    """The groups that a name is in, from the outermost inwards. ``names``: of all nodes.

    A number that was only put behind a name that another node has, or a word, as in ``relu.1`` beside ``relu``, is none.
    """
    if "/" in name:
        *outer, _ = name.strip("/").split("/")
        return _tidy([part for one in outer for part in one.split(".")])
    while (base := name.rpartition(".")[0]) and base in names:
        name = base
    return _tidy(name.split(".")[:-1])


def _tidy(parts: Sequence[str]) -> Path:
    """Without parts that say the same again; none at all where one is no word."""
    if not all(map(_PART.fullmatch, filter(None, parts))):
        return ()
    kept = [part for part in parts if part]
    kept = [part for before, part in pairwise(["", *kept]) if part != before]
    if len(kept) > DEEPEST:
        kept = [*kept[: DEEPEST - 1], ".".join(kept[DEEPEST - 1 :])]
    return tuple(kept)


def paths_of(entries: Sequence[Entry]) -> list[Path]:
    """For each of the entries, which are those of one model or body, the groups that it is in."""
    names = {entry.name for entry in entries}
    paths = [path_of(entry.name, names) if entry.kind == "node" else () for entry in entries]
    nodes = sum(entry.kind == "node" for entry in entries)
    if sum(map(bool, paths)) >= ENOUGH * nodes:
        return paths
    labels = [_label(entry) for entry in entries]
    return _spread(entries, labels) if any(labels) else paths


def _label(entry: Entry) -> Path | None:
    """The group that the names of an entry's weights tell; ``None`` where they tell none."""
    found = (path_of(one.name, ()) for one in entry.constants if "::" not in one.name)
    return max(found, key=len, default=()) or None


def _spread(entries: Sequence[Entry], labels: Sequence[Path | None]) -> list[Path]:
    """Groups for those without: what the one before and the one behind are both in."""
    behind: list[Path] = [()] * len(labels)
    for place in range(len(labels) - 2, -1, -1):
        behind[place] = labels[place + 1] or behind[place + 1]
    paths: list[Path] = []
    before: Path = ()
    for entry, label, after in zip(entries, labels, behind, strict=True):
        before = label or before
        shared = label if label is not None else _common(before, after)
        paths.append(shared if entry.kind == "node" else ())
    return paths


def _common(one: Path, other: Path) -> Path:
    return tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
