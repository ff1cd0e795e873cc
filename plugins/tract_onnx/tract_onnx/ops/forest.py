"""Decision trees as the attributes of a node describe them, checked, and put in the form that `TreeEnsemble` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import Constant
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.plugins.keys import Array
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.trees import Forest, Test, depth_of

MAX_TARGETS: Final = 1 << 20
"""Columns of scores that one row may give."""

MAX_FEATURES: Final = 1 << 31
"""Columns that a row may have."""

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
        return node.array(f"{name}_as_tensor").reshape(-1)
    return node.float_array(name, ())


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
    _same_length(node, "nodes", (*_NODES, "modes", "values"), optional=(_MISSING,))
    tests = _tests(*node.distinct_texts("nodes_modes"))
    if_true, if_false, roots, voting = _named_links(node, tests == Test.LEAF, votes, targets)
    return _forest(
        tests=tests,
        depth=depth_of(roots, if_true, if_false, tests == Test.LEAF),
        feature=_column(node, "nodes_featureids"),
        split=numbers(node, "nodes_values"),
        if_true=if_true,
        if_false=if_false,
        missing=_missing(node, len(tests)),
        roots=roots,
        votes=voting,
    )


_NODES: Final = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
_MISSING: Final = "missing_value_tracks_true"


def _same_length(node: OnnxNode, prefix: str, names: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raises CorruptModel when lists that belong together have different lengths, LimitExceeded for too long ones."""
    lengths = {name: _length(node, f"{prefix}_{name}") for name in (*names, *optional)}
    lengths = {name: length for name, length in lengths.items() if length or name not in optional}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{length} {prefix}_{name}" for name, length in lengths.items())
        raise CorruptModel(f"attributes that belong together have different lengths: {found}")
    if max(lengths.values()) > _I32.max:
        raise LimitExceeded(f"there are {max(lengths.values())} {prefix}, at most {_I32.max} are allowed")


def _length(node: OnnxNode, name: str) -> int:
    tensor = next((one for one in (name, f"{name}_as_tensor") if node.holds_tensor(one)), None)
    return node.length(name) if tensor is None else node.array(tensor).size


def _column(node: OnnxNode, name: str) -> Array:
    """A list of integers: in i32 where that holds them, as there may be millions."""
    column = node.int_array(name)
    fits = len(column) == 0 or (column.min() >= _I32.min and column.max() <= _I32.max)
    return column.astype(np.int32) if fits else column


_I32: Final = np.iinfo(np.int32)


def _named_links(
    node: OnnxNode, is_leaf: Array, votes: str, targets: int
) -> tuple[Array, Array, Array, tuple[Array, Array, Array]]:
    """Where the answers of each node lead, the first nodes of the trees, and who votes for what; by places."""
    trees = _column(node, "nodes_treeids")
    index = _Index(trees, _column(node, "nodes_nodeids"))
    own = np.arange(len(trees), dtype=np.int32)
    if_true, if_false = (
        np.where(is_leaf, own, index.places(trees, _column(node, f"nodes_{name}"), where=~is_leaf))
        for name in ("truenodeids", "falsenodeids")
    )
    return if_true, if_false, _roots(trees, if_true, if_false, is_leaf), _named_votes(node, votes, index, targets)


def _tests(names: Sequence[str], places: Array) -> Array:
    """What each node asks (u8). ``names``: the distinct modes of the file, ``places``: which of them each node has."""
    unknown = [name for name in names if name not in _TESTS]
    if unknown:
        raise Unsupported(f"'nodes_modes' has {unknown[0][:80]!r}; known are {', '.join(_TESTS)}")
    return np.array([_TESTS[name] for name in names], np.uint8)[places]


def _missing(node: OnnxNode, count: int) -> Array:
    column = node.int_array(f"nodes_{_MISSING}", ())
    return column != 0 if len(column) else np.zeros(count, np.bool_)


class _Index:
    """Where the node of a tree and of a number in it is.

    Raises CorruptModel when two nodes of a tree have one number.
    """

    def __init__(self, trees: Array, nodes: Array) -> None:
        self._trees, self._nodes = _table(trees), _table(nodes)
        keys = _in_blocks(self._key, np.int64, trees, nodes)
        self._order: Array | None = None
        if (keys[1:] <= keys[:-1]).any():
            self._order = np.argsort(keys, kind="stable").astype(np.int32)
            keys = keys[self._order]
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if twice.size:
            tree, node = divmod(int(keys[twice[0]]), len(self._nodes))
            raise CorruptModel(f"tree {self._trees[tree]} has two nodes of number {self._nodes[node]}")
        self._keys = keys if len(keys) else np.full(1, _NOWHERE + 1)

    def places(self, trees: Array, nodes: Array, where: Array | None = None) -> Array:
        """The places of nodes (i32), 0 outside ``where``. Raises CorruptModel for one that there is not."""
        if where is not None:
            result = np.zeros(len(trees), np.int32)
            result[where] = self.places(trees[where], nodes[where])
            return result
        return _in_blocks(self._find, np.int32, trees, nodes)

    def _find(self, trees: Array, nodes: Array) -> Array:
        keys = self._key(trees, nodes)
        found = np.searchsorted(self._keys, keys)
        known = self._keys.take(found, mode="clip") == keys
        if not known.all():
            lost = int(np.argmin(known))
            raise CorruptModel(f"tree {trees[lost]} has no node {nodes[lost]}, which an attribute names")
        return found if self._order is None else self._order[found]

    def _key(self, trees: Array, nodes: Array) -> Array:
        """One number (i64) for a tree and a node of it; `_NOWHERE` where there is no such tree, or no such node."""
        tree, node = np.searchsorted(self._trees, trees), np.searchsorted(self._nodes, nodes)
        known = self._trees.take(tree, mode="clip") == trees
        known &= self._nodes.take(node, mode="clip") == nodes
        return np.where(known, tree * len(self._nodes) + node, _NOWHERE)


_NOWHERE: Final = -2


def _table(column: Array) -> Array:
    """The distinct numbers of a column, in order; never none."""
    return np.unique(column) if len(column) else np.zeros(1, column.dtype)


def _in_blocks(
    function: Callable[[Array, Array], Array], dtype: type[np.generic], first: Array, second: Array
) -> Array:
    """What ``function`` gives for two columns, some elements at a time, so that its temporary arrays stay small."""
    result: Array = np.empty(len(first), dtype)
    for start in range(0, len(first), _BLOCK):
        part = slice(start, start + _BLOCK)
        result[part] = function(first[part], second[part])
    return result


_BLOCK: Final = 1 << 16
"""Elements of a column that are looked at together."""


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
    _same_length(node, prefix, ("treeids", "nodeids", "ids", "weights"))
    at = index.places(_column(node, f"{prefix}_treeids"), _column(node, f"{prefix}_nodeids"))
    ids = checked_range(_column(node, f"{prefix}_ids"), targets, f"{prefix}_ids")
    return at, ids.astype(np.int32, copy=False), numbers(node, f"{prefix}_weights")


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
    _same_length(node, "nodes", _POSITIONS, optional=(_MISSING,))
    _same_length(node, "leaf", ("targetids", "weights"))
    tests = node.array("nodes_modes").reshape(-1)
    checked_range(tests.astype(np.int64), Test.LEAF, "nodes_modes")
    count, leaves = len(tests), node.length("leaf_targetids")
    own = np.arange(count, count + leaves, dtype=np.int32)
    if_true, if_false = (np.append(_next(node, side, count, leaves), own) for side in ("true", "false"))
    roots = checked_range(_column(node, "tree_roots"), count, "tree_roots").astype(np.int32, copy=False)
    tests = np.append(tests.astype(np.uint8), np.full(leaves, Test.LEAF, np.uint8))
    split = node.array("nodes_splits").reshape(-1)
    ids = checked_range(_column(node, "leaf_targetids"), targets, "leaf_targetids").astype(np.int32, copy=False)
    return _forest(
        tests=tests,
        depth=depth_of(roots, if_true, if_false, tests == Test.LEAF),
        feature=np.append(_column(node, "nodes_featureids"), np.zeros(leaves, np.int32)),
        split=np.append(split, np.zeros(leaves, split.dtype)),
        if_true=if_true,
        if_false=if_false,
        missing=np.append(_missing(node, count), np.zeros(leaves, np.bool_)),
        roots=roots,
        votes=(own, ids, node.array("leaf_weights").reshape(-1)),
        members=_members(node, int(np.count_nonzero(tests == Test.MEMBER))),
    )


_POSITIONS: Final = (
    "featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs", "modes", "splits"
)  # fmt: skip


def _next(node: OnnxNode, side: str, nodes: int, leaves: int) -> Array:
    """The places (i32) that one side of every node leads to; leaves come after all nodes that ask."""
    name = f"nodes_{side}nodeids"
    to, to_leaf = _column(node, name), node.int_array(f"nodes_{side}leafs") != 0
    checked_range(to[to_leaf], leaves, name)
    checked_range(to[~to_leaf], nodes, name)
    return np.where(to_leaf, to + nodes, to).astype(np.int32)


def _members(node: OnnxNode, wanted: int) -> tuple[Array, Array]:
    """The values that nodes test membership of, and how many belong to each of these nodes, in their order.

    What is not a number ends the values of one node.
    """
    if not wanted:
        return np.zeros(0, np.float32), np.zeros(0, np.int64)
    values = node.array("membership_values").reshape(-1)
    is_end = np.isnan(values)
    sizes = np.bincount(np.cumsum(is_end)[~is_end], minlength=np.count_nonzero(is_end) + 1)
    if len(sizes) == wanted + 1 and not sizes[-1]:
        sizes = sizes[:-1]
    if len(sizes) != wanted:
        raise CorruptModel(f"'membership_values' has {len(sizes)} lists, and {wanted} nodes test membership")
    return values[~is_end], sizes


def _forest(
    *,
    tests: Array,
    depth: int,
    feature: Array,
    split: Array,
    if_true: Array,
    if_false: Array,
    missing: Array,
    roots: Array,
    votes: tuple[Array, Array, Array],
    members: tuple[Array, Array] = (np.zeros(0, np.float32), np.zeros(0, np.int64)),
) -> Forest:
    """``votes``: places of nodes, targets and weights; ``members``: values, and how many belong to each node."""
    is_leaf = tests == Test.LEAF
    checked_range(feature[~is_leaf], MAX_FEATURES, "nodes_featureids")
    at, target, weight = votes
    if (at[1:] < at[:-1]).any():
        order = np.argsort(at, kind="stable")
        at, target, weight = at[order], target[order], weight[order]
    fields: dict[str, Any] = {
        "test": tests,
        "feature": np.where(is_leaf, 0, feature).astype(np.int32, copy=False),
        "split": split,
        "if_true": if_true,
        "if_false": if_false,
        "missing": missing,
        "roots": roots,
        "first": _starts(np.bincount(at, minlength=len(tests))),
        "target": target,
        "weight": weight,
        "member_nodes": np.flatnonzero(tests == Test.MEMBER).astype(np.int32),
        "first_member": _starts(members[1]),
        "members": members[0],
    }
    return Forest(depth=depth, **{name: Constant(array) for name, array in fields.items()})


def _starts(sizes: Array) -> Array:
    """Where each part begins, and where the last one ends (i32)."""
    starts = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return starts
