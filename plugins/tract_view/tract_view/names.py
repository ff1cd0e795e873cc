"""Which groups the names of nodes tell: ``/layer1/layer1.0/conv1/Conv`` is in ``layer1``, ``0``, ``conv1``.

Names of ONNX have slashes, with the path of the module once more in each part; those of PyTorch have points. Where
most nodes have neither, the names of the weights that they read tell it, which NNEF calls labels: who reads the weight
``layer1.0.conv1.weight`` is in ``layer1.0.conv1``, and what reads only that is in ``layer1.0``. Else words are looked
at, as in ``layer1_0_conv1``, where they tell what stands together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tract_view.entries import Entry

Path = tuple[str, ...]

DEEPEST: Final = 12
"""Groups in groups that names tell; of deeper ones, the last bears what is left."""

ENOUGH: Final = 0.25
"""Where no more of the nodes than this have a group in their names, the names of weights are asked, then words."""

FEW: Final = 0.05
"""Where more of the nodes than this read a weight whose name tells a group, those names are followed."""

TOGETHER: Final = 0.2
"""How often the first word of names may change from node to node, where names are split into words."""

_PART: Final = re.compile(r"[\w\-\[\]:]+")


def path_of(name: str, names: Collection[str]) -> Path:
    """The groups that a name is in, from the outermost inwards. ``names``: of all nodes.

    What was only put behind a name that another node has, as in ``relu.1`` beside ``relu``, tells none.
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


def paths_of(entries: Mapping[int, Entry]) -> list[Path]:
    """For each of the entries of one model or body, which are given with their numbers, the groups that it is in."""
    names = {entry.name for entry in entries.values()}
    nodes = [*entries.values()]
    by_names = [path_of(entry.name, names) if entry.kind == "node" else () for entry in nodes]
    telling = sum(bool(path) and path[0] not in names for path in by_names)  # no mere steps of one operator
    if telling > ENOUGH * _nodes(nodes):
        return _with_readers(entries, by_names)
    return _with_readers(entries, _by_labels(entries, names) or _by_words(nodes) or by_names)


def _with_readers(entries: Mapping[int, Entry], paths: list[Path]) -> list[Path]:
    """The same, where nodes that read nothing and have no group are in that of who reads them."""
    readers: dict[int, list[Path]] = {}
    for entry, path in zip(entries.values(), paths, strict=True):
        for source, _, _ in entry.inputs:
            readers.setdefault(source, []).append(path)
    return [
        path if path or entry.inputs or entry.kind != "node" else _common(readers.get(number, []))
        for (number, entry), path in zip(entries.items(), paths, strict=True)
    ]


def _common(paths: Sequence[Path]) -> Path:
    """What several paths begin with."""
    shared = paths[0] if paths else ()
    for path in paths:
        shared = tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(shared, path, strict=False)))
    return shared


def _nodes(entries: Sequence[Entry]) -> int:
    return sum(entry.kind == "node" for entry in entries)


def _by_labels(entries: Mapping[int, Entry], names: Collection[str]) -> list[Path] | None:
    """By the names of weights. A node without is where the last of what it reads is: in the module of that weight."""
    labels = {number: _label(entry, names) for number, entry in entries.items()}
    if sum(map(bool, labels.values())) <= max(1, FEW * _nodes([*entries.values()])):
        return None
    paths: dict[int, Path] = {}
    for number, entry in entries.items():
        read = sorted({source for source, _, _ in entry.inputs if source in paths})
        around = [labels[one][:-1] if labels[one] else paths[one] for one in read]
        paths[number] = labels[number] or _module(around)
    return [paths[number] if entry.kind == "node" else () for number, entry in entries.items()]


def _label(entry: Entry, names: Collection[str]) -> Path:
    """The group that the names of an entry's weights tell; none where they tell nothing."""
    found = (path_of(one.name, names) for one in entry.constants if "::" not in one.name)
    return max((path for path in found if path and path[0] not in names), key=len, default=())


def _module(around: Sequence[Path]) -> Path:
    """The module of a node, given those of what it reads: the last, unless another is the one right around it."""
    last = around[-1] if around else ()
    return last[:-1] if last[:-1] in around[:-1] and last[:-1] else last


def _by_words(entries: Sequence[Entry]) -> list[Path] | None:
    """By the words of names, where what shares its first word stands together, as ``layer1_0_conv1`` does."""
    paths = [_tidy(entry.name.strip("_").split("_")[:-1]) if entry.kind == "node" else () for entry in entries]
    firsts = [path[0] for path, entry in zip(paths, entries, strict=True) if path and entry.kind == "node"]
    changes = sum(one != other for one, other in pairwise(firsts))
    return paths if firsts and len(firsts) > ENOUGH * _nodes(entries) and changes <= TOGETHER * len(firsts) else None
