"""Decision trees as the attributes of a node describe them, checked, and put in the form that `TreeEnsemble` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import Constant
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.plugins.keys import Array
from tract_onnx.node import OnnxNode
from tract_onnx.operators.trees import Forest, Test, depth_of

MAX_TARGETS: Final = 1 << 20
"""Columns of scores that one row may give."""

_TESTS: Final[Mapping[str, Test]] = {
    "BRANCH_LEQ": Test.LEQ,
    "BRANCH_LT": Test.LT,
    "BRANCH_GTE": Test.GTE,
    "BRANCH_GT": Test.GT,
    "BRANCH_EQ": Test.EQ,
    "BRANCH_NEQ": Test.NEQ,
    "LEAF": Test.LEAF,
}


def numbers(node: OnnxNode, name: str) -> Array:
    """A list of floats: f32, or the elements of the tensor that may stand for it; empty where there is neither."""
    if node.has(f"{name}_as_tensor"):
        return node.tensor(f"{name}_as_tensor").reshape(-1)
    return np.array(node.floats(name, ()), np.float32)


def checked_targets(count: int) -> int:
    """``count``, when it is a number of targets. Raises CorruptModel or LimitExceeded."""
    if count < 1:
        raise CorruptModel(f"there are {count} targets, at least one is wanted")
    if count > MAX_TARGETS:
        raise LimitExceeded(f"there are {count} targets, at most {MAX_TARGETS} are allowed")
    return count


def read_named(node: OnnxNode, votes: str, targets: int) -> Forest:
    """The trees of TreeEnsembleClassifier and TreeEnsembleRegressor: a node is named by its tree's number and its own.

    ``votes``: how the attributes of votes begin. Raises CorruptModel for trees that are none.
    """
    columns = _columns(node, ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids"))
    tests, split = _tests(node.strings("nodes_modes")), numbers(node, "nodes_values")
    missing = np.array(node.ints("nodes_missing_value_tracks_true", ()) or [0] * len(tests)) != 0
    _same_length({**columns, "modes": tests, "values": split, "missing_value_tracks_true": missing})
    index = _index(columns["treeids"], columns["nodeids"])
    is_leaf = tests == Test.LEAF
    own = np.arange(len(tests))
    if_true, if_false = (
        np.array(
            [
                own[i] if is_leaf[i] else _find(index, int(columns["treeids"][i]), int(columns[name][i]))
                for i in range(len(tests))
            ],
            np.int64,
        )
        for name in ("truenodeids", "falsenodeids")
    )
    roots = _roots(columns["treeids"], if_true, if_false, is_leaf)
    return _forest(
        tests=tests,
        feature=columns["featureids"],
        split=split,
        if_true=if_true,
        if_false=if_false,
        missing=missing,
        roots=roots,
        votes=_named_votes(node, votes, index, targets),
        members=[],
    )


def _columns(node: OnnxNode, names: Sequence[str]) -> dict[str, Array]:
    return {name: np.array(node.ints(f"nodes_{name}"), np.int64) for name in names}


def _same_length(columns: Mapping[str, Array], prefix: str = "nodes") -> None:
    if len({len(column) for column in columns.values()}) > 1:
        found = ", ".join(f"{len(column)} {prefix}_{name}" for name, column in columns.items())
        raise CorruptModel(f"attributes that belong together have different lengths: {found}")


def _tests(names: Sequence[str]) -> Array:
    try:
        return np.array([_TESTS[name] for name in names], np.uint8)
    except KeyError as error:
        known = ", ".join(_TESTS)
        raise Unsupported(f"'nodes_modes' has {str(error.args[0])[:80]!r}; known are {known}") from None


_Index = Mapping[tuple[int, int], int]
"""Where the node of a tree and of a number in it is."""


def _index(trees: Array, nodes: Array) -> _Index:
    pairs: list[tuple[int, int]] = list(zip(trees.tolist(), nodes.tolist(), strict=True))
    index = {pair: place for place, pair in enumerate(pairs)}
    if len(index) < len(pairs):
        tree, node = next(pair for place, pair in enumerate(pairs) if index[pair] != place)
        raise CorruptModel(f"tree {tree} has two nodes of number {node}")
    return index


def _find(index: _Index, tree: int, node: int) -> int:
    place = index.get((tree, node))
    if place is None:
        raise CorruptModel(f"tree {tree} has no node {node}, which an attribute names")
    return place


def _roots(trees: Array, if_true: Array, if_false: Array, is_leaf: Array) -> Array:
    """The one node of each tree that nothing leads to. Raises CorruptModel where there is none, or another one."""
    is_root = np.ones(len(trees), np.bool_)
    is_root[if_true[~is_leaf]] = False
    is_root[if_false[~is_leaf]] = False
    roots = np.flatnonzero(is_root)
    names, counts = np.unique(trees[roots], return_counts=True)
    lost = np.setdiff1d(trees, names)
    if lost.size:
        raise CorruptModel(f"tree {lost[0]} has no first node: its nodes lead to each other in a circle")
    if (counts > 1).any():
        raise CorruptModel(
            f"tree {names[np.argmax(counts > 1)]} has {counts.max()} nodes that nothing leads to, wanted 1"
        )
    return roots


def _named_votes(node: OnnxNode, prefix: str, index: _Index, targets: int) -> tuple[Array, Array, Array]:
    trees, nodes, ids = (np.array(node.ints(f"{prefix}_{name}"), np.int64) for name in ("treeids", "nodeids", "ids"))
    weights = numbers(node, f"{prefix}_weights")
    _same_length({"treeids": trees, "nodeids": nodes, "ids": ids, "weights": weights}, prefix)
    at = [_find(index, tree, number) for tree, number in zip(trees.tolist(), nodes.tolist(), strict=True)]
    return np.array(at, np.int64), checked_range(ids, targets, f"{prefix}_ids"), weights


def checked_range(ids: Array, count: int, name: str) -> Array:
    """``ids``, when all are from 0 to ``count - 1``. Raises CorruptModel."""
    outside = ids[(ids < 0) | (ids >= count)]
    if outside.size:
        raise CorruptModel(f"'{name}' has {outside[0]}, wanted 0 to {count - 1}")
    return ids


def read_numbered(node: OnnxNode, targets: int) -> Forest:
    """The trees of TreeEnsemble, where a node is a position in the lists, and leaves are lists of their own.

    Raises CorruptModel for trees that are none.
    """
    columns = _columns(node, ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs"))
    tests, split = node.tensor("nodes_modes").reshape(-1), node.tensor("nodes_splits").reshape(-1)
    missing = np.array(node.ints("nodes_missing_value_tracks_true", ()) or [0] * len(tests)) != 0
    _same_length({**columns, "modes": tests, "splits": split, "missing_value_tracks_true": missing})
    checked_range(tests.astype(np.int64), Test.LEAF, "nodes_modes")
    ids, weights = np.array(node.ints("leaf_targetids"), np.int64), node.tensor("leaf_weights").reshape(-1)
    _same_length({"targetids": ids, "weights": weights}, "leaf")
    count, leaves = len(tests), len(ids)
    if_true, if_false = (_next(columns, side, count, leaves) for side in ("true", "false"))
    own = np.arange(count, count + leaves)
    return _forest(
        tests=np.append(tests.astype(np.uint8), np.full(leaves, Test.LEAF, np.uint8)),
        feature=np.append(columns["featureids"], np.zeros(leaves, np.int64)),
        split=np.append(split, np.zeros(leaves, split.dtype)),
        if_true=np.append(if_true, own),
        if_false=np.append(if_false, own),
        missing=np.append(missing, np.zeros(leaves, np.bool_)),
        roots=checked_range(np.array(node.ints("tree_roots"), np.int64), count, "tree_roots"),
        votes=(own, checked_range(ids, targets, "leaf_targetids"), weights),
        members=_members(node, int((tests == Test.MEMBER).sum())),
    )


def _next(columns: Mapping[str, Array], side: str, nodes: int, leaves: int) -> Array:
    """The places that one side of every node leads to; leaves come after all nodes that ask."""
    to, to_leaf = columns[f"{side}nodeids"], columns[f"{side}leafs"] != 0
    name = f"nodes_{side}nodeids"
    checked_range(to[to_leaf], leaves, name)
    checked_range(to[~to_leaf], nodes, name)
    return np.where(to_leaf, to + nodes, to)


def _members(node: OnnxNode, wanted: int) -> list[Array]:
    """The values of each node that tests membership, in their order; what is not a number ends the values of one."""
    if not wanted:
        return []
    values = node.tensor("membership_values").reshape(-1)
    ends = np.flatnonzero(np.isnan(values))
    groups = [group[~np.isnan(group)] for group in np.split(values, ends)]
    if len(groups) == wanted + 1 and not len(groups[-1]):
        groups.pop()
    if len(groups) != wanted:
        raise CorruptModel(f"'membership_values' has {len(groups)} lists, and {wanted} nodes test membership")
    return groups


def _forest(
    *,
    tests: Array,
    feature: Array,
    split: Array,
    if_true: Array,
    if_false: Array,
    missing: Array,
    roots: Array,
    votes: tuple[Array, Array, Array],
    members: Sequence[Array],
) -> Forest:
    is_leaf = tests == Test.LEAF
    if (feature[~is_leaf] < 0).any():
        raise CorruptModel(f"'nodes_featureids' has {feature[~is_leaf].min()}, wanted 0 or more")
    at, target, weight = votes
    order = np.argsort(at, kind="stable")
    sizes = np.zeros(len(tests), np.int64)
    sizes[tests == Test.MEMBER] = [len(group) for group in members]
    fields: dict[str, Any] = {
        "test": tests,
        "feature": feature,
        "split": split,
        "if_true": if_true,
        "if_false": if_false,
        "missing": missing,
        "roots": roots,
        "first": _starts(np.bincount(at, minlength=len(tests))),
        "target": target[order],
        "weight": weight[order],
        "first_member": _starts(sizes),
        "members": np.concatenate([*members, np.zeros(0, split.dtype)]),
    }
    depth = depth_of(roots, if_true, if_false, is_leaf)
    return Forest(depth=depth, **{name: Constant(array) for name, array in fields.items()})


def _starts(sizes: Array) -> Array:
    return np.append(0, np.cumsum(sizes)).astype(np.int64)
