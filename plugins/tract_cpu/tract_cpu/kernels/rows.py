"""Rows: several passes over the same positions, which sum up, and compute with the sums what they write.

A row is all that is reduced to one: its positions are those of the inner loops. Each pass goes through them once, and
computes values at each, of tensors, of what passes before it found for the whole row, and of what they laid down in
scratch memory; it adds some of them up (or takes the largest, ...), and writes others. Softmax, all kinds of norms and
plain reductions are such programs.

The lanes of vectors are positions of one row; or, ``across``, the same position of neighbouring rows. Each row is
computed the same whoever does it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tract_llvm.elements.expressions import Apply, rounded
from tract_llvm.elements.reducers import REDUCTIONS, Kept
from tract_llvm.fuse.steps import Fold, Load, RowStep
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Variable
from tract_llvm.language.types import U8, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size, Sizes, Taken


@frozen
class RowTensor:
    """What rows are read from or written to. ``move``: how it moves along the lanes, ``stays``, ``next`` or ``far``.

    ``scratch``: whether it is memory of the call's own, for one row.
    """

    element: ElementType
    move: str
    scratch: bool = False


@frozen
class Pass:
    """One pass over a row; all are numbers of values, and pairs of them with numbers of tensors.

    ``once``: computed before it, for the whole row. ``reloads``: read from tensors instead of being computed again.
    ``each``: computed at each position, in order. ``folds``: what is reduced. ``writes``: what goes to which tensor.
    ``vectors``: how many vectors of a row are computed side by side, where lanes go along it; ``waits``: whether one of
    them has long to wait, so that they are computed as a longer one, what one waits for beside what others wait for.
    """

    once: tuple[int, ...]
    reloads: tuple[tuple[int, int], ...]
    each: tuple[int, ...]
    folds: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]
    vectors: int
    waits: bool


@frozen
class Lanes:
    """How positions are cut into vectors.

    ``count``: how many lanes a vector has, 0 for single numbers. ``vectors``: how many are computed side by side where
    ``across``, which says that lanes are neighbouring rows. ``masked``: whether what is left is computed under a mask.
    """

    count: int
    vectors: int
    masked: bool
    across: bool

    @property
    def block(self) -> int:
        """How many elements lie side by side."""
        return max(self.count, 1) * self.vectors


@frozen
class RowsPlan:
    """``steps``: how each value comes about. ``outer``, ``inner``: how many loops there are over rows, and over a row.

    ``last``: what is computed when all passes are done, for the whole row; ``results``: which of the values that there
    is one of for the row go to which tensor.
    """

    steps: tuple[RowStep, ...]
    tensors: tuple[RowTensor, ...]
    passes: tuple[Pass, ...]
    last: tuple[int, ...]
    results: tuple[tuple[int, int], ...]
    outer: int
    inner: int
    lanes: Lanes

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "rows"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        tensors = tuple((Size("scratch") if one.scratch else Memory("tensor", one.element),) for one in self.tensors)
        strides = Sizes("strides", len(tensors))
        return Signature.of(
            Sizes("outer_sizes", self.outer),
            Sizes("inner_sizes", self.inner),
            Each("tensors", tensors),
            Each.of("outer", self.outer, strides),
            Each.of("inner", self.inner, strides),
        )

    def emit(self, k: Kernel) -> None:
        """Task by task, one row, or ``across`` so many as lie side by side."""
        rows = _Rows(self, k)
        with k.loop("task", k.end, k.begin) as task:
            rows.across(task) if self.lanes.across else rows.along(task)


@dataclass(frozen=True, slots=True, eq=False)
class _Spot:
    """A vector of positions: where it begins along the loop that lanes go along, and which lanes there are.

    ``found``: the values that there are of a whole row, of each of these rows. ``kept``: for each fold, what is kept.
    """

    begin: Value
    lanes: int
    mask: Value | None
    found: dict[int, Value]
    kept: list[list[Variable]]


class _Rows:
    """The rows while they are written."""

    def __init__(self, plan: RowsPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self._outer, self._inner = taken.sizes("outer_sizes"), taken.sizes("inner_sizes")
        self._bases = [self._base(*one) for one in zip(plan.tensors, taken.each("tensors"), strict=True)]
        # For each loop, how far each tensor moves.
        self._outer_strides = [one.sizes("strides") for one in taken.each("outer")]
        self._inner_strides = [one.sizes("strides") for one in taken.each("inner")]
        count: Value = k.index(1)
        for size in self._inner:
            count = count * size
        self._count = count

    def _base(self, tensor: RowTensor, taken: Taken) -> Buffer:
        if tensor.scratch:
            return self.k.scratch(U8).at(taken.size("scratch")).of(tensor.element)
        return taken.memory("tensor")

    # ---- which rows

    def along(self, task: Value) -> None:
        """One row, vectors of whose positions are computed together."""
        places = self._row(self._bases, task, self.plan.outer)
        row = _Spot(self.k.index(0), 0, None, {}, [])
        for one in self.plan.passes:
            self._once(one.once, places, row)
            self._pass_along(one, places, row)
        self._finish(places, row)

    def across(self, task: Value) -> None:
        """Neighbouring rows: whole vectors side by side, or what is left of them at the end."""
        k, lanes = self.k, self.plan.lanes
        columns, strides = self._outer[-1], self._outer_strides[-1]
        blocks = (columns + (lanes.block - 1)) // lanes.block
        places = self._row(self._bases, task // blocks, self.plan.outer - 1)
        first = (task % blocks) * lanes.block
        left = columns - first
        places = [
            place if tensor.scratch else place.at(first * stride)
            for place, tensor, stride in zip(places, self.plan.tensors, strides, strict=True)
        ]
        with k.either(left >= lanes.block) as (then, otherwise):
            with then:
                self._rows(places, [self._spot(k.index(v * lanes.count), None) for v in range(lanes.vectors)])
            with otherwise:
                whole = left if lanes.masked else left - left % lanes.count
                with k.loop("columns", whole, step=lanes.count) as begin:
                    mask = k.mask(left - begin, lanes.count) if lanes.masked else None
                    self._rows(places, [self._spot(begin, mask)])
                if not lanes.masked:
                    with k.loop("column", left, whole) as begin:
                        self._rows(places, [_Spot(begin, 0, None, {}, [])])

    def _spot(self, begin: Value, mask: Value | None) -> _Spot:
        return _Spot(begin, self.plan.lanes.count, mask, {}, [])

    def _row(self, places: Sequence[Buffer], number: Value, loops: int) -> list[Buffer]:
        """Where the row of a number begins, counted over the first outer loops."""
        found = list(places)
        for axis in reversed(range(loops)):
            position = number if axis == 0 else number % self._outer[axis]
            number = number // self._outer[axis] if axis else number
            found = _moved(found, position, self._outer_strides[axis])
        return found

    def _rows(self, places: Sequence[Buffer], spots: Sequence[_Spot]) -> None:
        """Rows side by side, position by position."""
        for one in self.plan.passes:
            for spot in spots:
                self._once(one.once, places, spot)
                spot.kept[:] = [self._start(number, spot.lanes) for number in one.folds]
            with self._positions(places, self.plan.inner) as (position, at):
                for spot in spots:
                    self._each(one, at, spot, position.splat(spot.lanes), None)
            for spot in spots:
                for number, kept in zip(one.folds, spot.kept, strict=True):
                    spot.found[number] = self._folded(number, tuple(part.value for part in kept))
        for spot in spots:
            self._finish(places, spot)

    @contextmanager
    def _positions(self, places: Sequence[Buffer], loops: int) -> Generator[tuple[Value, list[Buffer]]]:
        """Goes through the first inner loops: the position in the last of them, and where the tensors are."""
        if loops == 0:
            yield self.k.index(0), list(places)
            return
        size, strides = self._inner[loops - 1], self._inner_strides[loops - 1]
        with self._positions(places, loops - 1) as (_, at), self.k.loop(f"inner{loops}", size) as position:
            yield position, _moved(at, position, strides)

    # ---- passes

    def _pass_along(self, one: Pass, places: Sequence[Buffer], row: _Spot) -> None:
        """A pass over one row, vectors of positions at a time."""
        k, lanes = self.k, self.plan.lanes
        vectors = [self._kept_of(one, lanes.count, row) for _ in range(one.vectors if lanes.count else 0)]
        singles = self._kept_of(one, 0, row)
        with self._positions(places, self.plan.inner - 1) as (_, at):
            size = self._inner[-1]
            whole = size - size % lanes.count if lanes.count else k.index(0)
            if lanes.count:
                block = lanes.count * one.vectors
                many = size - size % block
                with k.loop("vectors", many, step=block) as begin:
                    if one.waits:
                        self._vector(one, at, vectors, begin, None)
                    else:
                        for number, spot in enumerate(vectors):
                            self._vector(one, at, [spot], begin + number * lanes.count, None)
                if one.vectors > 1:
                    with k.loop("vector", whole, many, lanes.count) as begin:
                        self._vector(one, at, vectors[:1], begin, None)
            if lanes.count and lanes.masked:
                with k.when(whole < size):
                    self._vector(one, at, vectors[:1], whole, k.mask(size - whole, lanes.count))
            else:
                with k.loop("single", size, whole) as begin:
                    self._vector(one, at, [singles], begin, None)
        for place, number in enumerate(one.folds):
            parts = [tuple(part.value for part in spot.kept[place]) for spot in vectors]
            found = tuple(part.value for part in singles.kept[place])
            if parts:
                whole_row = self._single(number, self._merged(number, parts))
                found = whole_row if lanes.masked else self._merged(number, [whole_row, found])
            row.found[number] = self._folded(number, found)

    def _kept_of(self, one: Pass, lanes: int, row: _Spot) -> _Spot:
        return _Spot(row.begin, lanes, None, row.found, [self._start(number, lanes) for number in one.folds])

    def _vector(
        self, one: Pass, places: Sequence[Buffer], spots: Sequence[_Spot], begin: Value, mask: Value | None
    ) -> None:
        """Vectors that follow each other, as a longer one."""
        lanes = spots[0].lanes * len(spots)
        position = self.k.lanes(lanes) + begin if lanes else begin
        kept = [parts for spot in spots for parts in spot.kept]
        self._each(one, places, _Spot(begin, lanes, mask, spots[0].found, kept), position, mask)

    def _each(self, one: Pass, places: Sequence[Buffer], spot: _Spot, position: Value, fold_mask: Value | None) -> None:
        """What a pass does at one position, or a vector of them.

        What is kept of folds may be of several vectors, that of the first one first, which each have a part of it.
        """
        values: dict[int, Value] = {}

        def value(number: int) -> Value:
            return values[number] if number in values else spot.found[number].splat(spot.lanes)

        for number, tensor in one.reloads:
            values[number] = self._load(tensor, places, spot)
        for number in one.each:
            values[number] = self._computed(number, places, spot, value)
        parts = len(spot.kept) // max(len(one.folds), 1)
        for place, number in enumerate(one.folds):
            operand = self._fold(number).operand
            added = zip(*(all_.parts(parts) for all_ in (value(operand), position)), strict=True)
            for kept, (x, at) in zip(spot.kept[place :: len(one.folds)], added, strict=True):
                self._fold_in(number, kept, x, at, fold_mask)
        for number, tensor in one.writes:
            self._store(tensor, places, spot, value(number))

    def _fold_in(self, number: int, kept: Sequence[Variable], x: Value, position: Value, mask: Value | None) -> None:
        before = tuple(part.value for part in kept)
        after = REDUCTIONS[self._fold(number).reducer].add(before, x, position)
        for variable, old, new in zip(kept, before, after, strict=True):
            variable.value = new if mask is None else self.k.select(mask, new, old)

    def _once(self, numbers: Sequence[int], places: Sequence[Buffer], spot: _Spot) -> None:
        for number in numbers:
            spot.found[number] = self._computed(number, places, spot, spot.found.__getitem__)

    def _finish(self, places: Sequence[Buffer], spot: _Spot) -> None:
        self._once(self.plan.last, places, spot)
        for number, tensor in self.plan.results:
            self._store(tensor, places, spot, spot.found[number].splat(spot.lanes))

    # ---- values

    def _computed(self, number: int, places: Sequence[Buffer], spot: _Spot, value: Callable[[int], Value]) -> Value:
        step = self.plan.steps[number]
        if isinstance(step, Load):
            return self._load(step.tensor, places, spot)
        assert isinstance(step, Apply)  # folds are computed by passes
        found = step.emit(step.op, *(value(operand) for operand in step.operands))
        return rounded(found, step.result).splat(spot.lanes)

    def _load(self, tensor: int, places: Sequence[Buffer], spot: _Spot) -> Value:
        place, move = places[tensor], self.plan.tensors[tensor].move
        if move == "stays":
            return place[0].splat(spot.lanes)
        if move == "next":
            return place.vector(spot.begin, spot.lanes, spot.mask)
        return place[spot.begin * self._far(tensor)]

    def _store(self, tensor: int, places: Sequence[Buffer], spot: _Spot, value: Value) -> None:
        far = self.plan.tensors[tensor].move == "far"
        places[tensor].put(spot.begin * self._far(tensor) if far else spot.begin, value, spot.mask)

    def _far(self, tensor: int) -> Value:
        return self._inner_strides[-1][tensor]

    # ---- folds

    def _fold(self, number: int) -> Fold:
        step = self.plan.steps[number]
        assert isinstance(step, Fold)  # passes list folds by number
        return step

    def _start(self, number: int, lanes: int) -> list[Variable]:
        fold = self._fold(number)
        type_ = self.plan.steps[fold.operand].result.computed
        return [self.k.variable(one) for one in REDUCTIONS[fold.reducer].start(self.k, type_, lanes)]

    def _merged(self, number: int, parts: Sequence[Kept]) -> Kept:
        """Parts merged two by two, the first half with the second, until there is one."""
        found, merge = list(parts), REDUCTIONS[self._fold(number).reducer].merge
        while len(found) > 1:
            half = (len(found) + 1) // 2
            found = [merge(a, b) for a, b in zip(found[:half], found[half:], strict=False)] + found[
                len(found) // 2 : half
            ]
        return found[0]

    def _single(self, number: int, kept: Kept) -> Kept:
        """The lanes merged."""
        while kept[0].lanes:
            halves = [part.halves() for part in kept]
            kept = self._merged(number, [tuple(one[0] for one in halves), tuple(one[1] for one in halves)])
        return kept

    def _folded(self, number: int, kept: Kept) -> Value:
        fold = self._fold(number)
        return rounded(REDUCTIONS[fold.reducer].finish(kept, self._count), fold.result)


def _moved(places: Sequence[Buffer], position: Value, strides: Sequence[Value]) -> list[Buffer]:
    return [place.at(position * stride) for place, stride in zip(places, strides, strict=True)]
