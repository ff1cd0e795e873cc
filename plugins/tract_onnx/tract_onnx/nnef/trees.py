"""Ensembles of decision trees.

A file has them as three tensors of u32. ``trees``: the first node of each tree. ``nodes``: a row of five for each node;
one that asks has the feature, the nodes for yes and for no, the bits of the f32 that it compares with, and the number
of the test, plus 256 where what is not a number goes the way of yes; a leaf has the first and the last but one of its
votes, and zeros. ``leaves``: pairs of a class and the bits of the f32 that it is voted with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, ONNX, PY, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.cast import Cast
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.trees import Aggregate, Forest, Test, TreeEnsemble, depth_of

ROWS = Rows()

_TESTS: Final[Mapping[int, Test]] = {
    0: Test.LEAF,
    1: Test.EQ,
    2: Test.NEQ,
    3: Test.LT,
    4: Test.GT,
    5: Test.LEQ,
    6: Test.GTE,
}
_NUMBERS: Final[Mapping[Test, int]] = {test: number for number, test in _TESTS.items()}
_MISSING: Final = 256


@reads(
    ROWS,
    ONNX,
    "tract_onnx_ml_tree_ensemble_classifier(input: tensor<scalar>, trees: tensor<integer>, nodes: tensor<integer>,"
    " leaves: tensor<integer>, max_used_feature: integer, n_classes: integer, aggregate_fn: string,"
    " datum_type: string = 'f32') -> (output: tensor<scalar>)",
)
def read_trees(call: Call) -> OutletId:
    """The votes for each class, as f32 unless ``datum_type`` is f64. Raises CorruptModel for trees that are none."""
    aggregate = call.member("aggregate_fn", Aggregate)
    classes = call.integer("n_classes")
    forest = _forest(*(_table(call, name, width) for name, width in (("trees", 1), ("nodes", 5), ("leaves", 2))))
    if forest.target.array.max(initial=-1) >= classes:
        raise CorruptModel(f"{call.name}: a leaf votes for class {forest.target.array.max()}, of {classes}")
    found = call.op(TreeEnsemble(forest, classes, aggregate), call.input("input"))
    return found if call.element_type("datum_type") is DatumType.F64 else call.op(Cast(DatumType.F32), found)


@ROWS.row(NNEF_WRITE, TreeEnsemble)
def write_trees(op: TreeEnsemble, node: Spelling) -> Invocation | None:
    """Where all that they know are floats of 32 bits, and no node tests membership.

    The tract engines take the test ``>=`` for a leaf, so that it is written as the opposite of ``<`` where nothing else
    can say it.
    """
    forest = _without_gte(op.forest)
    if forest != op.forest and node.allows(PY):
        return None
    tables = _tables(forest)
    if tables is None or _forest(*tables) != forest:
        return None
    return node.invoke(
        "tract_onnx_ml_tree_ensemble_classifier",
        node.input(0),
        *map(node.constant, ("trees", "nodes", "leaves"), map(Constant, tables)),
        max_used_feature=forest.columns - 1,
        n_classes=op.targets,
        aggregate_fn=op.aggregate.value,
        datum_type="f64",
        registry=ONNX,
    )


def _table(call: Call, name: str, width: int) -> Array:
    found = call.array(name)
    if found.dtype != np.uint32 or found.size % width:
        raise CorruptModel(f"{call.name}: {name!r} is {Constant(found)}, wanted rows of {width} u32")
    return found.reshape(-1, width)[:, 0] if width == 1 else found.reshape(-1, width)


def _forest(trees: Array, nodes: Array, leaves: Array) -> Forest:
    """The trees of a file. Raises CorruptModel for trees that are none."""
    count = len(nodes)
    numbers = nodes[:, 4] & (_MISSING - 1)
    if numbers.size and int(numbers.max()) not in _TESTS:
        raise CorruptModel(f"the test number {numbers.max()} is not one of {', '.join(map(str, _TESTS))}")
    tests = np.array([_TESTS.get(number, Test.LEAF) for number in range(_MISSING)], np.uint8)[numbers]
    is_leaf = tests == Test.LEAF
    own = np.arange(count, dtype=np.int64)
    if_true, if_false = (np.where(is_leaf, own, nodes[:, column].astype(np.int64)) for column in (1, 2))
    roots = trees.astype(np.int64)
    _want_below(count, "node", if_true, if_false, roots)
    _want_below(len(leaves) + 1, "vote", nodes[is_leaf, 1].astype(np.int64))
    begins, ends = (np.where(is_leaf, nodes[:, column].astype(np.int64), 0) for column in (0, 1))
    sizes = ends - begins
    if (sizes < 0).any():
        raise CorruptModel("a leaf ends before it begins")
    if sizes.sum() > len(leaves):
        raise CorruptModel(f"the leaves have {sizes.sum()} votes, of which there are {len(leaves)}: they share some")
    votes = np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
    fields: dict[str, Any] = {
        "test": tests,
        "feature": np.where(is_leaf, 0, nodes[:, 0]).astype(np.int32),
        "split": np.where(is_leaf, 0, nodes[:, 3]).astype(np.uint32).view(np.float32),
        "if_true": if_true.astype(np.int32),
        "if_false": if_false.astype(np.int32),
        "missing": (nodes[:, 4] & _MISSING) != 0,
        "roots": roots.astype(np.int32),
        "first": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        "target": leaves[votes, 0].astype(np.int32),
        "weight": leaves[votes, 1].copy().view(np.float32),
        "member_nodes": np.zeros(0, np.int32),
        "first_member": np.zeros(1, np.int32),
        "members": np.zeros(0, np.float32),
    }
    depth = depth_of(fields["roots"], fields["if_true"], fields["if_false"], is_leaf)
    return Forest(depth=depth, **{name: Constant(array) for name, array in fields.items()})


def _want_below(end: int, what: str, *found: Array) -> None:
    highest = max(int(part.max(initial=-1)) for part in found)
    if highest >= end:
        raise CorruptModel(f"a tree leads to {what} {highest}, and there are {end}")


def _tables(forest: Forest) -> tuple[Array, Array, Array] | None:
    """The trees as a file has them; ``None`` where it cannot."""
    split, weight, tests = forest.split.array, forest.weight.array, forest.test.array
    if split.dtype != np.float32 or weight.dtype != np.float32 or Test.MEMBER in forest.asked:
        return None
    is_leaf = tests == Test.LEAF
    first = forest.first.array
    numbers = np.array([_NUMBERS.get(Test(test), 0) for test in Test], np.uint32)[tests]
    columns = [
        np.where(is_leaf, first[:-1], forest.feature.array),
        np.where(is_leaf, first[1:], forest.if_true.array),
        np.where(is_leaf, 0, forest.if_false.array),
        np.where(is_leaf, 0, split.view(np.uint32)),
        np.where(is_leaf, 0, numbers + _MISSING * forest.missing.array.astype(np.uint32)),
    ]
    leaves = np.stack([forest.target.array.astype(np.uint32), weight.view(np.uint32)], 1)
    return forest.roots.array.astype(np.uint32), np.stack(columns, 1).astype(np.uint32), leaves


def _without_gte(forest: Forest) -> Forest:
    """The same trees, where what asks whether a feature is at least a value asks whether it is less."""
    asks = forest.test.array == Test.GTE
    if not asks.any():
        return forest
    if_true, if_false = forest.if_true.array, forest.if_false.array
    return replace(
        forest,
        test=Constant(np.where(asks, np.uint8(Test.LT), forest.test.array)),
        if_true=Constant(np.where(asks, if_false, if_true)),
        if_false=Constant(np.where(asks, if_true, if_false)),
        missing=Constant(forest.missing.array ^ asks),
    )
