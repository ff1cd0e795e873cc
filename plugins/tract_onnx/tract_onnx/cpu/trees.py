"""Decision trees, walked natively: several rows or several trees at a time, none of which waits for another.

A walk is a chain of loads, each of which says where the next one is: it takes as long as the first cache needs to
answer, some times over. So walks are made side by side. Where there are as many rows, they are rows of one tree, which
stays in the first cache meanwhile; what is left over walks through several trees at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size
from tract_cpu.lower.check import equal
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, F64, I32, INDEX, ElementType, element_type
from tract_llvm.language.values import Value
from tract_llvm.program.storages import Address

from tract_core.data import Constant, DatumType
from tract_core.dims import ceil_div, comparison
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_onnx.cpu.forest import AT_ONCE, laid_out
from tract_onnx.onnx_only.trees import Aggregate, Forest, Test, TreeEnsemble

ROWS = Rows()

ROWS_OF_TASK: Final = 128
"""Rows that one task walks through a tree before it comes to the next one."""

_MOST: Final = 1 << 30
"""Places that a forest may have."""

_TABLES: Final[Mapping[str, type[np.generic]]] = {"f32": np.float32, "f64": np.float64}


@frozen
class TreesPlan:
    """``x``: the type of features; ``split``: that in which they are compared; ``weight``: that of votes.

    ``flips``: whether there are features that are asked with the other sign. ``votes``: ``"one"`` where every leaf
    votes for the one target there is, ``"target"`` where it votes for one of them, ``"any"`` for any number of
    votes. ``aggregate``: what is made of the votes for one target.
    """

    x: ElementType
    split: ElementType
    weight: ElementType
    flips: bool
    votes: str
    aggregate: str

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "trees"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        x, split, weight = Memory("x", self.x), Memory("split", self.split), Memory("weight", self.weight)
        tables = split, Memory("links", I32), Memory("first", I32), Memory("target", I32), weight
        sizes = map(Size, ("rows", "trees", "with_empty", "targets"))
        return Signature.of(*sizes, x, Size("row_step"), Size("column_step"), *tables, Memory("result", F64))

    def emit(self, k: Kernel) -> None:
        """Sizes and tensors as the row below passes them; task by task, some rows."""
        _Trees(self, k).walk_rows()


class _Trees:
    """The kernel while it is written."""

    def __init__(self, plan: TreesPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        sizes = ("rows", "trees", "with_empty", "targets")
        self._rows, self._trees, self._with_empty, self._targets = map(taken.size, sizes)
        self._x, self._row_step, self._column_step = taken.memory("x"), *map(taken.size, ("row_step", "column_step"))
        self._split, self._links = taken.memory("split"), taken.memory("links")
        self._first, self._target, self._weight = map(taken.memory, ("first", "target", "weight"))
        self._result = taken.memory("result")

    def walk_rows(self) -> None:
        """All rows of the tasks."""
        k = self.k
        with k.loop("task", k.end, k.begin) as task:
            first = task * ROWS_OF_TASK
            last = k.smaller(first + ROWS_OF_TASK, self._rows)
            whole = last - (last - first) % AT_ONCE
            start = 0.0 if self._sums else float("nan")
            with k.loop("start", last * self._targets, first * self._targets) as place:
                self._result[place] = k.constant(start, F64)
            with k.loop("tree", self._trees) as tree, k.loop("rows", whole, first, AT_ONCE) as row:
                rows = [row + number for number in range(AT_ONCE)]
                self._walk([tree] * AT_ONCE, [self._x.at(one * self._row_step) for one in rows], rows)
            with k.loop("row", last, whole) as row:
                x = self._x.at(row * self._row_step)
                with k.loop("trees", self._with_empty, step=AT_ONCE) as tree:
                    trees = [tree + number for number in range(AT_ONCE)]
                    self._walk(trees, [x] * AT_ONCE, [row] * AT_ONCE)
            with k.loop("end", last * self._targets, first * self._targets) as place:
                self._result[place] = self._finished(self._result[place])

    @property
    def _sums(self) -> bool:
        return self.plan.aggregate in ("SUM", "AVERAGE")

    def _walk(self, roots: Sequence[Value], features: Sequence[Buffer], rows: Sequence[Value]) -> None:
        """Go down, and have the leaves vote for rows. The first places are those of the roots."""
        k = self.k
        places = [k.variable(root) for root in roots]
        moved = k.variable(k.index(1))
        with k.loop_while("down", lambda: moved.value.differs(0)):
            changes = k.index(0)
            for place, x in zip(places, features, strict=True):
                here = place.value
                following = self._next(here, x)
                place.value = following
                changes = changes | (following ^ here)
            moved.value = changes
        for place, row in zip(places, rows, strict=True):
            self._vote(place.value, row * self._targets)

    def _next(self, place: Value, x: Buffer) -> Value:
        k = self.k
        feature, pair = (k.convert(self._links[place * 2 + number], INDEX) for number in range(2))
        if self.plan.flips:
            sign = feature >> 63
            value = self._feature(x, feature ^ sign)
            value = k.select(sign.differs(0), -value, value)
        else:
            value = self._feature(x, feature)
        return pair + k.select(value <= self._split[place], k.index(0), k.index(1))

    def _feature(self, x: Buffer, number: Value) -> Value:
        return self.k.convert(self.k.convert(x[number * self._column_step], self._rounded), self.plan.split)

    @property
    def _rounded(self) -> ElementType:
        """The type to which features are converted before they are compared in another one, perhaps."""
        return compared(self.plan.x)

    def _vote(self, leaf: Value, row: Value) -> None:
        """``row``: the place of its first target."""
        if self.plan.votes == "any":
            first, end = (self.k.convert(self._first[leaf + number], INDEX) for number in range(2))
            with self.k.loop("vote", end, first) as vote:
                self._count(row + self.k.convert(self._target[vote], INDEX), self._weight[vote])
            return
        at = row + self.k.convert(self._target[leaf], INDEX) if self.plan.votes == "target" else row
        self._count(at, self._weight[leaf])

    def _count(self, at: Value, weight: Value) -> None:
        k, total, vote = self.k, self._result[at], self.k.convert(weight, F64)
        if self._sums:
            self._result[at] = total + vote
        else:
            better = vote < total if self.plan.aggregate == "MIN" else vote > total
            self._result[at] = k.select(better | total.differs(total), vote, total)

    def _finished(self, total: Value) -> Value:
        """What the votes come to; 0 where there are none."""
        if self.plan.aggregate == "AVERAGE":
            return total / self.k.convert(self._trees, F64)
        return total if self._sums else self.k.select(total.differs(total), total.like(0), total)


def _floats(table: Constant, least: ElementType) -> ElementType:
    """The type for numbers of a table, or that of what they meet."""
    return F64 if F64 in (element_type(DatumType.from_numpy(table.array.dtype)), least) else F32


def _address(site: Site, table: Array) -> Address:
    view = site.lowering.constant(table)
    assert view is not None  # numbers of 32 or 64 bits
    return view.address


def compared(x: ElementType) -> ElementType:
    """The type in which features are taken: f32 for floats that fit, else f64."""
    return F32 if x.kind == "f" and x.bits <= 32 else F64


@frozen
class _Voting:
    """How leaves vote, by places: the entries ``first[place]`` to ``first[place + 1]`` of ``target`` and ``weight``.

    ``kind``: ``"target"`` where every leaf has one vote; ``first`` is empty then, and the entry is at the place itself.
    """

    kind: str
    first: Array
    target: Array
    weight: Array


def _votes(forest: Forest, nodes: Array, *, is_extreme: bool) -> _Voting:
    """``nodes``: those of the places. ``is_extreme``: whether no vote is something else than a vote of 0."""
    is_leaf = (nodes >= 0) & (forest.test.array[nodes] == Test.LEAF)
    begins = np.where(is_leaf, forest.first.array[nodes], 0)
    counts = np.where(is_leaf, forest.first.array[nodes + 1], 0) - begins
    if counts.max(initial=0) <= 1 and (counts[is_leaf | (nodes < 0)].all() or not is_extreme):
        votes, entries = counts > 0, np.where(counts > 0, begins, 0)
        target, weight = (column.array.take(entries, mode="clip") for column in (forest.target, forest.weight))
        return _Voting("target", _NONE, np.where(votes, target, 0).astype(np.int32), np.where(votes, weight, 0))
    first = np.append(0, np.cumsum(counts)).astype(np.int32)
    entries: Array = np.arange(int(first[-1])) + np.repeat(begins - first[:-1], counts)
    return _Voting("any", first, forest.target.array[entries], forest.weight.array[entries])


_NONE: Final = np.zeros(0, np.int32)


@ROWS.row(CPU, TreeEnsemble)
def lower_trees(op: TreeEnsemble, site: Site) -> str | None:
    """One kernel, for forests whose places and votes can be counted in 31 bits."""
    (x,), forest = site.known_inputs(), op.forest
    split, weight = _floats(forest.split, compared(x.element)), _floats(forest.weight, F32)
    laid = laid_out(forest, _TABLES[split.name])
    is_extreme = op.aggregate in (Aggregate.MIN, Aggregate.MAX)
    if is_extreme and np.isnan(forest.weight.array).any():
        return "a vote is not a number"
    if len(laid.nodes) > _MOST:
        return f"native code walks through {_MOST} places at most"
    voting = _votes(forest, laid.nodes, is_extreme=is_extreme)
    kind = "one" if op.targets == 1 and voting.kind == "target" else voting.kind
    aggregate = op.aggregate.value if len(forest.roots.array) else Aggregate.SUM.value
    plan = TreesPlan(x.element, split, weight, laid.flips, kind, aggregate)
    (result,) = site.results()
    tables = (laid.split, laid.links, voting.first, voting.target, voting.weight.astype(_TABLES[weight.name]))
    rows, columns = x.shape
    enough = comparison(columns, ">=", forest.columns)
    steps = [] if enough == 1 else [NativeStep(*equal([(enough, 1)]), 1, (), (result.storage,))]
    addresses = [_address(site, table) for table in tables]
    given = arguments(
        plan,
        rows=rows,
        trees=len(forest.roots.array),
        with_empty=laid.trees,
        targets=op.targets,
        x=x.address,
        row_step=x.strides[0],
        column_step=x.strides[1],
        **dict(zip(("split", "links", "first", "target", "weight"), addresses, strict=True)),
        result=result.address,
    )
    work = rows * len(forest.roots.array) * forest.depth
    tasks = ceil_div(rows, ROWS_OF_TASK)
    site.add_all([*steps, NativeStep(plan, given, tasks, (), (result.storage,), work=work)])
    return None
