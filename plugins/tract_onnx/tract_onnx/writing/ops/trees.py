"""Decision trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from onnx import numpy_helper

from tract_core.data import DatumType
from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.trees import Aggregate, Forest, Test, TreeEnsemble
from tract_onnx.operators import ML_DOMAIN
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()

Array = np.ndarray[Any, Any]

_MODES: Final[Mapping[int, str]] = {
    Test.LEQ: "BRANCH_LEQ",
    Test.LT: "BRANCH_LT",
    Test.GTE: "BRANCH_GTE",
    Test.GT: "BRANCH_GT",
    Test.EQ: "BRANCH_EQ",
    Test.NEQ: "BRANCH_NEQ",
    Test.LEAF: "LEAF",
}
_CODES: Final[Mapping[int, int]] = {
    Test.LEQ: 0,
    Test.LT: 1,
    Test.GTE: 2,
    Test.GT: 3,
    Test.EQ: 4,
    Test.NEQ: 5,
    Test.MEMBER: 6,
}
"""What nodes ask, as the newer operator has it."""

_AGGREGATES: Final[Mapping[Aggregate, int]] = {
    Aggregate.AVERAGE: 0,
    Aggregate.SUM: 1,
    Aggregate.MIN: 2,
    Aggregate.MAX: 3,
}


@ROWS.row(ONNX_WRITE, TreeEnsemble)
def trees(op: TreeEnsemble, node: Spelling) -> str | None:
    """TreeEnsembleRegressor of f32, whose votes it adds in f32; else TreeEnsemble, where each leaf votes once"""
    kind, forest = node.fact().datum_type, op.forest
    narrow = kind in (DatumType.F32, DatumType.F16, DatumType.BF16)
    if narrow and Test.MEMBER not in forest.asked:
        x = node.input() if kind is DatumType.F32 else node.cast(node.input(), DatumType.F32)
        made = node.add("TreeEnsembleRegressor", x, domain=ML_DOMAIN, **_regressor(op))
        return node.cast(made, DatumType.F64)
    leaves = forest.test.array == Test.LEAF
    if (np.diff(forest.first.array)[leaves] != 1).any():
        return None
    wide = DatumType.F32 if narrow else DatumType.F64
    x = node.input() if kind is wide else node.cast(node.input(), wide)
    made = node.add("TreeEnsemble", x, domain=ML_DOMAIN, **_ensemble(op, wide.numpy))
    return made if wide is DatumType.F64 else node.cast(made, DatumType.F64)


def _regressor(op: TreeEnsemble) -> dict[str, Any]:
    forest = op.forest
    tree, order = _by_tree(forest)
    is_leaf = forest.test.array == Test.LEAF
    votes = np.repeat(np.arange(len(is_leaf)), np.diff(forest.first.array))
    ways = (np.where(is_leaf, 0, way.array)[order] for way in (forest.if_true, forest.if_false))
    if_true, if_false = ways
    return {
        "nodes_treeids": tree[order].tolist(),
        "nodes_nodeids": order.tolist(),
        "nodes_featureids": np.where(is_leaf, 0, forest.feature.array)[order].tolist(),
        "nodes_values": np.where(is_leaf, 0, forest.split.array)[order].astype(np.float32).tolist(),
        "nodes_modes": [_MODES[int(test)] for test in forest.test.array[order]],
        "nodes_truenodeids": if_true.tolist(),
        "nodes_falsenodeids": if_false.tolist(),
        "nodes_missing_value_tracks_true": forest.missing.array[order].astype(np.int64).tolist(),
        "target_treeids": tree[votes].tolist(),
        "target_nodeids": votes.tolist(),
        "target_ids": forest.target.array.tolist(),
        "target_weights": forest.weight.array.astype(np.float32).tolist(),
        "n_targets": op.targets,
        "aggregate_function": op.aggregate.value,
    }


def _by_tree(forest: Forest) -> tuple[Array, Array]:
    """For each node its tree; and the nodes tree by tree, each behind the one that leads to it."""
    test, roots = forest.test.array, forest.roots.array
    tree = np.full(len(test), -1)
    tree[roots] = np.arange(len(roots))
    level, found = roots, [roots]
    while level.size:
        asking = level[test[level] != Test.LEAF]
        level = np.concatenate([forest.if_true.array[asking], forest.if_false.array[asking]])
        tree[level] = np.tile(tree[asking], 2)
        found.append(level)
    order = np.concatenate(found)
    return tree, order[np.argsort(tree[order], kind="stable")]


def _ensemble(op: TreeEnsemble, kind: np.dtype[Any]) -> dict[str, Any]:
    """Nodes that ask and leaves are numbered apart; a tree that is one leaf asks something, and comes to it anyway."""
    forest = op.forest
    test = forest.test.array
    asks = np.flatnonzero(test != Test.LEAF)
    lone = forest.roots.array[test[forest.roots.array] == Test.LEAF]
    number = np.full(len(test), -1)
    number[asks] = np.arange(len(asks))
    leaf = np.cumsum(test == Test.LEAF) - 1
    root = number.copy()
    root[lone] = len(asks) + np.arange(len(lone))

    def ways(way: Array) -> tuple[list[int], list[int]]:
        next_ones = np.concatenate([way[asks], lone])
        is_leaf = test[next_ones] == Test.LEAF
        return np.where(is_leaf, leaf[next_ones], number[next_ones]).tolist(), is_leaf.astype(np.int64).tolist()

    (if_true, true_leaves), (if_false, false_leaves) = ways(forest.if_true.array), ways(forest.if_false.array)
    last = forest.first.array[:-1][test == Test.LEAF]
    modes = [_CODES[int(one)] for one in test[asks]] + [0] * len(lone)
    told: dict[str, Any] = {
        "tree_roots": root[forest.roots.array].tolist(),
        "nodes_featureids": [*forest.feature.array[asks].tolist(), *[0] * len(lone)],
        "nodes_splits": _tensor([*forest.split.array[asks].tolist(), *[0] * len(lone)], kind),
        "nodes_modes": _tensor(modes, np.dtype(np.uint8)),
        "nodes_truenodeids": if_true,
        "nodes_trueleafs": true_leaves,
        "nodes_falsenodeids": if_false,
        "nodes_falseleafs": false_leaves,
        "nodes_missing_value_tracks_true": [*forest.missing.array[asks].astype(np.int64).tolist(), *[0] * len(lone)],
        "leaf_targetids": forest.target.array[last].tolist(),
        "leaf_weights": _tensor(forest.weight.array[last].tolist(), kind),
        "n_targets": op.targets,
        "aggregate_function": _AGGREGATES[op.aggregate],
    }
    if Test.MEMBER in forest.asked:
        told["membership_values"] = _tensor(_members(forest, asks), kind)
    return told


def _members(forest: Forest, asks: Array) -> list[float]:
    """The values of each node that tests membership, in their order; what is no number ends each list."""
    found: list[float] = []
    for one in asks[forest.test.array[asks] == Test.MEMBER]:
        place = int(np.argmax(forest.member_nodes.array == one))
        start, end = forest.first_member.array[place : place + 2]
        found += [*forest.members.array[start:end].tolist(), np.nan]
    return found


def _tensor(values: list[Any], kind: np.dtype[Any]) -> Any:
    return numpy_helper.from_array(np.array(values, kind))
