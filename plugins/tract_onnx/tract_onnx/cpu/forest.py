"""Decision trees as the kernel walks them: one kind of question, and the two answers of a node side by side.

Every question is made one of "is x at most s", which is false for what is not a number:

- ``x < s`` asks for the number before ``s``; ``x >= s`` and ``x > s`` are the opposite, with the answers exchanged.
- ``x == s`` and membership are several questions, one behind the other.
- Where what is not a number has to go the way of yes, it is asked whether ``-x`` is less than ``-s``, with the answers
  exchanged.

A place has a node. First come the roots of the trees, in order, and behind them pairs of places: where yes and where no
leads from one node. The next place is the first one of the pair where the answer is yes, else the second one. A leaf
leads to itself: its question is never answered with yes, and its pair begins one place before it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from tract_core.plugins.keys import Array
from tract_onnx.onnx_only.trees import Forest, Test

AT_ONCE: Final = 8
"""How many walks are made side by side; the number of trees is a multiple of it, for which empty ones are added."""


@dataclass(frozen=True)
class Laid:
    """What there is at each place.

    ``split``: what the feature is compared with. ``links``: the feature, and the place of the pair (i32); a feature
    that is asked with the other sign is there as ``-1 - feature``. ``nodes``: the node; -1 for the leaf of an empty
    tree, and for nodes that the forest does not have. ``trees``: how many there are, with empty ones.
    """

    split: Array
    links: Array
    nodes: Array
    trees: int

    @property
    def flips(self) -> bool:
        """Whether any feature is asked with the other sign."""
        return bool((self.links[:, 0] < 0).any())


def laid_out(forest: Forest, compute: type[np.generic]) -> Laid:
    """The places. ``compute``: the type of floats in which features are compared."""
    found = _Questions(
        test=forest.test.array,
        feature=forest.feature.array,
        split=forest.split.array.astype(compute),
        yes=forest.if_true.array,
        no=forest.if_false.array,
        lost=forest.missing.array | (forest.test.array == Test.NEQ),
    )
    found = _signs(_orders(_equals(_members(found, forest))))
    roots, count = forest.roots.array, len(found.test)
    trees = -(-len(roots) // AT_ONCE) * AT_ONCE
    asks = np.flatnonzero(found.test != Test.LEAF)
    pairs = np.stack([found.yes[asks], found.no[asks]], axis=1).reshape(-1)
    nodes: Array = np.concatenate([roots, np.full(trees - len(roots), count), pairs])
    pair = np.zeros(count + 1, np.int32)
    pair[asks] = trees + 2 * np.arange(len(asks))
    is_leaf = np.append(found.test == Test.LEAF, True)[nodes]
    split = np.where(is_leaf, compute(np.nan), np.append(found.split, compute(0))[nodes])
    feature = np.where(is_leaf, 0, np.append(found.feature, 0)[nodes])
    following = np.where(is_leaf, np.arange(len(nodes)) - 1, pair[nodes])
    links = np.stack([feature, following], axis=1).astype(np.int32)
    return Laid(split, links, np.where(nodes < len(forest.test.array), nodes, -1), trees)


@dataclass(frozen=True)
class _Questions:
    """Nodes, one entry for each in every list, as in `Forest`; those that are added come last.

    ``lost``: whether what is not a number goes the way of ``yes``.
    """

    test: Array
    feature: Array
    split: Array
    yes: Array
    no: Array
    lost: Array

    def put(self, at: Array, **columns: Array | float) -> _Questions:
        """With other entries in the places of these nodes."""
        found = {name: getattr(self, name).copy() for name in columns}
        for name, values in columns.items():
            found[name][at] = values
        return replace(self, **found)

    def with_more(self, of: Array, **columns: Array | float) -> _Questions:
        """With copies of the nodes ``of`` behind the others, but for these entries."""
        found: dict[str, Array] = {field.name: getattr(self, field.name) for field in fields(self)}
        more = {name: np.broadcast_to(columns.get(name, column[of]), len(of)) for name, column in found.items()}
        return _Questions(
            **{name: np.append(column, more[name].astype(column.dtype)) for name, column in found.items()}
        )


def _members(nodes: _Questions, forest: Forest) -> _Questions:
    """Membership: it is asked value by value whether it is the one, until the answer is yes."""
    starts, values = forest.first_member.array, forest.members.array
    for place, node in enumerate(forest.member_nodes.array.tolist()):
        own = values[starts[place] : starts[place + 1]].astype(nodes.split.dtype)
        first, more = (own[:1] if len(own) else np.full(1, np.nan)), own[1:]
        added: Array = len(nodes.test) + np.arange(len(more))
        following = np.append(added, nodes.no[node])
        nodes = nodes.put(np.array([node]), test=Test.EQ, split=first, no=following[:1])
        nodes = nodes.with_more(np.full(len(more), node), split=more, no=following[1:])
    return nodes


def _equals(nodes: _Questions) -> _Questions:
    """Equal is at most, and then not less; not equal is the same with other answers."""
    never = np.isnan(nodes.split)
    for test in (Test.EQ, Test.NEQ):
        at = np.flatnonzero((nodes.test == test) & ~never[: len(nodes.test)])
        same, other = (nodes.yes[at], nodes.no[at]) if test is Test.EQ else (nodes.no[at], nodes.yes[at])
        count = len(nodes.test)
        nodes = nodes.with_more(at, test=Test.LT, yes=other, no=same, lost=False)
        lost = nodes.lost[at] & (test is Test.EQ)
        nodes = nodes.put(at, test=Test.LEQ, yes=count + np.arange(len(at)), no=other, lost=lost)
        never = np.append(never, np.zeros(len(at), np.bool_))
    return nodes


def _orders(nodes: _Questions) -> _Questions:
    """Every question is whether the feature is at most the number."""
    never = np.isnan(nodes.split)
    always = np.flatnonzero(never & (nodes.test == Test.NEQ))
    nodes = nodes.put(always, no=nodes.yes[always], lost=False)
    opposite = np.flatnonzero(~never & ((nodes.test == Test.GTE) | (nodes.test == Test.GT)))
    nodes = _exchanged(nodes, opposite, lost=~nodes.lost[opposite])
    less = np.flatnonzero(~never & ((nodes.test == Test.LT) | (nodes.test == Test.GTE)))
    nodes = nodes.put(less, split=_before(nodes.split[less]))
    numbers = np.flatnonzero(np.isnan(nodes.split) & nodes.lost)
    return _exchanged(nodes, numbers, lost=False, split=np.inf)


def _signs(nodes: _Questions) -> _Questions:
    """What is not a number never goes the way of yes."""
    at = np.flatnonzero(nodes.lost & (nodes.test != Test.LEAF))
    return _exchanged(nodes, at, lost=False, feature=-1 - nodes.feature[at], split=_before(-nodes.split[at]))


def _exchanged(nodes: _Questions, at: Array, **columns: Array | float) -> _Questions:
    return nodes.put(at, yes=nodes.no[at], no=nodes.yes[at], **columns)


def _before(split: Array) -> Array:
    """The numbers right before; where there is none, what no number is at most."""
    with np.errstate(over="ignore"):  # before the least number there is infinity
        before = np.nextafter(split, split.dtype.type(-np.inf))
    return np.where(split == -np.inf, np.nan, before).astype(split.dtype)
