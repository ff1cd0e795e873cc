"""Decision trees: many of them, each of which sends a row of features to one of its leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cached_property
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel, FactError, RunError
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

CHUNK: Final = 1 << 20
"""Pairs of a row and a tree, or a target, that are looked at together: it bounds the memory that a run takes."""


class Test(IntEnum):
    """What a node asks of its feature. The numbers are those of ONNX; a leaf asks nothing."""

    LEQ = 0
    LT = 1
    GTE = 2
    GT = 3
    EQ = 4
    NEQ = 5
    MEMBER = 6
    LEAF = 7


class Aggregate(Enum):
    """What is made of the weights that the trees give one target."""

    AVERAGE = "AVERAGE"
    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees, one entry per node in every list.

    ``test``: what the node asks, a `Test` (u8). ``feature``: the column that it looks at (i32). ``split``: what it
    compares with. ``if_true``, ``if_false``: which node comes next (i32). ``missing``: whether what is not a number
    goes the way of ``if_true`` (bool). ``roots``: the first node of each tree (i32). ``depth``: how many questions are
    asked at most.

    Node ``i`` votes with the entries ``first[i]`` to ``first[i + 1]`` (i32) of ``target`` (i32) and ``weight``. The
    nodes that test membership are ``member_nodes`` (i32); the values of the one at place ``j`` there are the entries
    ``first_member[j]`` to ``first_member[j + 1]`` of ``members``.
    """

    test: Constant
    feature: Constant
    split: Constant
    if_true: Constant
    if_false: Constant
    missing: Constant
    roots: Constant
    depth: int
    first: Constant
    target: Constant
    weight: Constant
    member_nodes: Constant
    first_member: Constant
    members: Constant

    @cached_property
    def columns(self) -> int:
        """How many features there must be."""
        return int(self.feature.array.max(initial=-1, where=self.test.array != Test.LEAF)) + 1

    @cached_property
    def asked(self) -> frozenset[Test]:
        """What the nodes ask."""
        return frozenset(map(Test, np.flatnonzero(np.bincount(self.test.array, minlength=Test.LEAF + 1)).tolist()))


@dataclass(frozen=True)
class TreeEnsemble(TypedOp):
    """The votes of all trees for a matrix of features, one row each: f64 of shape [rows, ``targets``].

    A target that no tree votes for has 0.
    """

    forest: Forest
    targets: int
    aggregate: Aggregate

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One column per target. Raises FactError unless the input is a matrix of numbers with all the features."""
        (x,) = arity(self, inputs, 1)
        wanted = self.forest.columns
        if x.rank != 2 or not (x.datum_type.is_float() or x.datum_type.is_integer()):
            raise FactError(f"TreeEnsemble wants a matrix of numbers, found {x}")
        if not is_symbolic(x.shape[1]) and int(x.shape[1]) < wanted:
            raise FactError(f"TreeEnsemble looks at {wanted} features, found {x}")
        return (TypedFact.of(DatumType.F64, (x.shape[0], self.targets)),)


def depth_of(roots: Array, if_true: Array, if_false: Array, is_leaf: Array) -> int:
    """How many questions the trees ask at most.

    Every node learns how far it is from an ancestor, and who that is; then it takes over what its ancestor knows, so
    that the distance doubles in each round, and a chain of a million nodes takes twenty.

    Raises CorruptModel when a node that asks can be reached in two ways, or not at all: then the trees share nodes, or
    go in circles.
    """
    asks = ~is_leaf
    number = np.cumsum(asks, dtype=np.int32) - 1
    first = number[roots[asks[roots]]]
    ancestor = np.arange(np.count_nonzero(asks), dtype=np.int32)
    distance = np.zeros(len(ancestor), np.int32)
    seen = np.zeros(len(ancestor), np.bool_)
    seen[first] = True
    ways = len(first)
    for following in (if_true[asks], if_false[asks]):
        parents = np.flatnonzero(asks[following])
        children = number[following[parents]]
        ancestor[children], distance[children], seen[children] = parents, 1, True
        ways += len(children)
    if ways > np.count_nonzero(seen):
        raise CorruptModel("a node of a tree can be reached in two ways: the trees share nodes, or go in circles")
    for _ in range(len(ancestor).bit_length()):
        distance += distance[ancestor]
        ancestor = ancestor[ancestor]
    is_first = np.zeros(len(ancestor), np.bool_)
    is_first[first] = True
    if not is_first[ancestor].all():
        lost = np.flatnonzero(asks)[np.argmin(is_first[ancestor])]
        raise CorruptModel(
            f"no first node of a tree leads to the node at place {lost}: it is part of a circle, or lost"
        )
    return int(distance.max(initial=-1)) + 1


_COMPARE: Final[Mapping[Test, Callable[[Array, Array], Array]]] = {
    Test.LEQ: np.less_equal,
    Test.LT: np.less,
    Test.GTE: np.greater_equal,
    Test.GT: np.greater,
    Test.EQ: np.equal,
    Test.NEQ: np.not_equal,
}


@ROWS.row(REFERENCE, TreeEnsemble)
def reference(op: TreeEnsemble, x: Array) -> Array:
    """Every row walks all trees at once, a level at a time"""
    if x.shape[1] < op.forest.columns:
        raise RunError(f"the trees look at {op.forest.columns} features, found {x.shape[1]}")
    compute = np.float32 if x.dtype.itemsize <= 4 and DatumType.from_numpy(x.dtype).is_float() else np.float64
    x = x.astype(compute, copy=False)
    rows = max(CHUNK // max(len(op.forest.roots.array), op.targets), 1)
    parts = [_votes(op, leaves_of(op.forest, x[start : start + rows])) for start in range(0, len(x), rows)]
    return np.concatenate(parts or [np.zeros((0, op.targets))])


def leaves_of(forest: Forest, x: Array) -> Array:
    """The leaf that each row reaches in each tree: [rows, trees]."""
    roots = forest.roots.array
    place = np.tile(roots, len(x))
    row = np.repeat(np.arange(len(x)), len(roots))
    walking = np.flatnonzero(forest.test.array[place] != Test.LEAF)
    while walking.size:
        check_run_time()
        node = place[walking]
        value = x[row[walking], forest.feature.array[node]]
        goes_true = _answers(forest, node, value)
        place[walking] = np.where(goes_true, forest.if_true.array[node], forest.if_false.array[node])
        walking = walking[forest.test.array[place[walking]] != Test.LEAF]
    return place.reshape(len(x), len(roots))


def _answers(forest: Forest, node: Array, value: Array) -> Array:
    """For pairs of a node and the feature that it looks at, whether the answer is yes."""
    tests, split = forest.test.array[node], forest.split.array[node]
    result = np.isnan(value) & forest.missing.array[node]
    for test in forest.asked & _COMPARE.keys():
        result |= (tests == test) & _COMPARE[test](value, split)
    for member_node in np.unique(node[tests == Test.MEMBER]):
        place = int(np.argmax(forest.member_nodes.array == member_node))
        start, end = forest.first_member.array[place : place + 2]
        here = node == member_node
        result[here] |= np.isin(value[here], forest.members.array[start:end])
    return result


def _votes(op: TreeEnsemble, leaves: Array) -> Array:
    """What the trees say of each row, for the leaves that the row reaches."""
    rows, trees = leaves.shape
    first = op.forest.first.array
    counts = first[leaves + 1] - first[leaves]
    ends = np.cumsum(counts)
    entry: Array = np.arange(int(counts.sum())) + np.repeat(
        first[leaves].reshape(-1) - ends + counts.reshape(-1), counts.reshape(-1)
    )
    place: Array = np.repeat(np.arange(int(rows)), counts.sum(axis=1)) * op.targets + op.forest.target.array[entry]
    weights = op.forest.weight.array[entry].astype(np.float64)
    if op.aggregate in (Aggregate.SUM, Aggregate.AVERAGE):
        total = np.bincount(place, weights, rows * op.targets).astype(np.float64)  # integers where nobody votes
        total = total / trees if op.aggregate is Aggregate.AVERAGE and trees else total
    else:
        total = _extreme(op.aggregate, place, weights, rows * op.targets)
    return total.reshape(rows, op.targets)


def _extreme(aggregate: Aggregate, place: Array, weights: Array, size: int) -> Array:
    keep, start = (np.minimum, np.inf) if aggregate is Aggregate.MIN else (np.maximum, -np.inf)
    total = np.full(size, start)
    keep.at(total, place, weights)
    voted = np.bincount(place, minlength=size) > 0
    return np.where(voted, total, 0.0)


@ROWS.row(MEMORY, TreeEnsemble)
def memory(op: TreeEnsemble, made: int, x: Array) -> int:
    """The rows in another type, where each of a part of them is in each tree, and all votes twice"""
    pairs = len(x) * max(len(op.forest.roots.array), op.targets)
    return 8 * x.size + _PAIR * min(pairs, CHUNK) + 2 * made


_PAIR: Final = 96
"""Bytes for each pair of a row and a tree: a dozen numbers on the way down."""


@ROWS.row(COST, TreeEnsemble)
def cost(op: TreeEnsemble, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One comparison per row, tree and level."""
    count = len(op.forest.roots.array) * op.forest.depth
    return {f"FMA({inputs[0].datum_type.storage.name})": inputs[0].shape[0] * count}


@ROWS.row(AXES, TreeEnsemble)
def axes(op: TreeEnsemble, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Rows stay in place."""
    return AxesMapping.natural_but([2], [2], [1])
