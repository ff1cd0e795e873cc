"""Programs for rows: what is summed, or compared, along rows, and computed with that of their elements.

A row is all that is reduced to one. Several threads share one; where they can hold all of its elements, these are read
once and stay in registers, else each pass goes through the row again. Sums are summed in an order that sizes alone
decide: by each thread, then between lanes, threads and warps, two by two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tract_llvm.elements.expressions import rounded
from tract_llvm.elements.reducers import REDUCTIONS, Kept
from tract_llvm.fuse.steps import Fold, Load, RowStep
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.lanes import read_lanes, write_lanes
from tract_cuda.kernels.reduce import Place, Spread, chosen
from tract_cuda.language.kernel import Kernel, Parameter, sizes


@frozen
class RowTensor:
    """What is read or written. ``move``: how it moves along the lanes, ``stays``, ``next`` or ``far``."""

    element: ElementType
    move: str


@frozen
class Pass:
    """One pass over a row; all are numbers of values, and pairs of them with numbers of tensors.

    ``once``: computed before it, for the whole row; ``each``: at each position, in order; ``folds``: what is reduced;
    ``writes``: what goes to which tensor.
    """

    once: tuple[int, ...]
    each: tuple[int, ...]
    folds: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]


@frozen
class RowsPlan:
    """``steps``: how each value comes about. ``outer``, ``inner``: how many loops there are over rows, and over a row.

    ``last``: what is computed behind all passes, for the whole row; ``results``: which of the values that there is one
    of for a row go to which tensor. ``spread``: who computes what. ``slots``: how many vectors of a row a thread holds
    at most: one number, or several, from the least, of which the first that suffices is taken; longer rows are gone
    through again by each pass. ``exact``: whether each thread holds as many; ``longer``: whether there may be longer.
    ``at_once``: how many vectors a thread reads before it computes with them, where a row is gone through.
    """

    steps: tuple[RowStep, ...]
    tensors: tuple[RowTensor, ...]
    passes: tuple[Pass, ...]
    last: tuple[int, ...]
    results: tuple[tuple[int, int], ...]
    outer: int
    inner: int
    spread: Spread
    slots: tuple[int, ...]
    exact: bool
    longer: bool
    at_once: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "rows"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.spread.threads

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``rows``: how many rows, or vectors of them; ``count``: of vectors in a row; ``length``: of its positions.

        ``outer``, ``inner``: the sizes of the loops, in vectors where vectors go along them; each tensor, how far apart
        its elements are in two rounds of each loop, and in two lanes, ``apart``.
        """
        found = [Parameter("rows"), Parameter("count"), Parameter("length")]
        found += [*sizes("outer", self.outer), *sizes("inner", self.inner)]
        for number, one in enumerate(self.tensors):
            found += [Parameter(f"tensor{number}", one.element), *sizes(f"outer{number}.", self.outer)]
            found += [*sizes(f"inner{number}.", self.inner), Parameter(f"apart{number}")]
        return tuple(found)

    def emit(self, k: Kernel) -> None:
        """The row, or the vector of rows, of this thread."""
        self._emit(k, RowsWriter(self, k), self.slots)

    def _emit(self, k: Kernel, rows: RowsWriter, slots: Sequence[int]) -> None:
        """With the first number of slots that suffices."""
        if not slots:
            rows.go_through()
        elif len(slots) == 1 and not self.longer:
            rows.hold(slots[0])
        else:
            with k.either(k.size("count") <= slots[0] * self.spread.parts) as (then, otherwise):
                with then:
                    rows.hold(slots[0])
                with otherwise:
                    self._emit(k, rows, slots[1:])


@dataclass(frozen=True, slots=True)
class _Spot:
    """A vector of positions. ``number``: which vector of the row; ``mask``: whether it is one; ``values``: by number.

    ``at``: along each inner loop.
    """

    number: Value
    at: list[Value]
    mask: Value | None
    values: dict[int, Value] = field(default_factory=dict[int, Value])


class RowsWriter:
    """The rows while they are written."""

    def __init__(self, plan: RowsPlan, k: Kernel) -> None:
        self.plan, self.k, self.spread = plan, k, plan.spread
        self.place = Place(k, plan.spread)
        self._shared: dict[int, list[Buffer]] = {}
        self.number, rows = k.block() * self.spread.rows + self.place.row, k.size("rows")
        self.is_one = self.number < rows
        row = k.select(self.is_one, self.number, rows - 1)
        outer = k.spot(row, k.sizes("outer", plan.outer))
        self._bases = [self._moved(k.index(0), f"outer{n}.", outer) for n in range(len(plan.tensors))]
        self._inner = k.sizes("inner", plan.inner)

    @property
    def _along(self) -> int:
        """Lanes of a vector of positions of one row."""
        return 0 if self.spread.across else self.spread.vector

    @property
    def _lanes_of_row(self) -> int:
        """Lanes of what there is one of for a row."""
        return self.spread.vector if self.spread.across else 0

    # ---- the two ways

    def hold(self, slots: int) -> None:
        """All elements of a row are held by its threads. ``slots``: how many vectors each has."""
        plan, parts = self.plan, self.spread.parts
        numbers = [self.place.part + slot * parts for slot in range(slots)]
        spots = [self._spot(one, None if plan.exact else self.k.size("count")) for one in numbers]
        found: dict[int, Value] = {}
        for one in plan.passes:
            self.once(one.once, found)
            self._each(one, spots, found)
            for number in one.folds:
                kept = self._added(number, self.start(number), spots, found)
                found[number] = self._folded(number, kept)
            self._write(one, spots, found)
        self.finish(found)

    def go_through(self) -> None:
        """Each pass reads the row again."""
        k = self.k
        found: dict[int, Value] = {}
        for one in self.plan.passes:
            self.once(one.once, found)
            for number, kept in self.gone_through(one, found, self.place.part, k.size("count")).items():
                found[number] = self._folded(number, kept)
        self.finish(found)

    def gone_through(self, one: Pass, found: Mapping[int, Value], first: Value, stop: Value) -> dict[int, Kept]:
        """A pass over the vectors from one on, up to another: what this thread keeps of each reduction."""
        k, parts, at_once = self.k, self.spread.parts, self.plan.at_once
        kept = [[k.variable(part) for part in self.start(number)] for number in one.folds]
        with k.loop("vectors", stop, first, parts * at_once) as begin:
            spots = [self._spot(begin + n * parts, stop if n else None) for n in range(at_once)]
            self._each(one, spots, found)
            for number, variables in zip(one.folds, kept, strict=True):
                after = self._added(number, tuple(part.value for part in variables), spots, found)
                for variable, value in zip(variables, after, strict=True):
                    variable.value = value
            self._write(one, spots, found)
        return {
            number: tuple(part.value for part in variables) for number, variables in zip(one.folds, kept, strict=True)
        }

    def _spot(self, number: Value, stop: Value | None) -> _Spot:
        """``stop``: the first vector that is none, where it may be one of them."""
        return _Spot(number, self.k.spot(number, self._inner), None if stop is None else number < stop)

    # ---- values

    def _each(self, one: Pass, spots: Sequence[_Spot], found: Mapping[int, Value]) -> None:
        for number in one.each:
            for spot in spots:
                if number not in spot.values:
                    spot.values[number] = self._computed(number, spot, self._value_of(spot, found))

    def _value_of(self, spot: _Spot, found: Mapping[int, Value]) -> Callable[[int], Value]:
        def value(number: int) -> Value:
            return spot.values[number] if number in spot.values else found[number].splat(self.spread.vector)

        return value

    def once(self, numbers: Sequence[int], found: dict[int, Value]) -> None:
        """Compute values that there is one of for a row."""
        for number in numbers:
            found[number] = self._computed(number, None, found.__getitem__)

    def _computed(self, number: int, spot: _Spot | None, value: Callable[[int], Value]) -> Value:
        step = self.plan.steps[number]
        if isinstance(step, Load):
            return self._load(step.tensor, spot)
        assert not isinstance(step, Fold), "passes compute them"
        found = step.emit(step.op, *(value(operand) for operand in step.operands))
        return rounded(found, step.result).splat(self._lanes_of_row if spot is None else self.spread.vector)

    def finish(self, found: dict[int, Value]) -> None:
        """What is written once for a row, by the first of its threads."""
        self.once(self.plan.last, found)
        if self.plan.results:
            with self.k.when(self.is_one & self.place.part.equals(0)):
                for number, tensor in self.plan.results:
                    self._store(tensor, None, found[number])

    # ---- memory

    def _moved(self, place: Value, prefix: str, at: Sequence[Value]) -> Value:
        for position, stride in zip(at, self.k.sizes(prefix, len(at)), strict=True):
            place = place + position * stride
        return place

    def _lanes(self, spot: _Spot | None) -> int:
        return self._lanes_of_row if spot is None else self.spread.vector

    def _place_of(self, tensor: int, spot: _Spot | None) -> Value:
        base = self._bases[tensor]
        return base if spot is None else self._moved(base, f"inner{tensor}.", spot.at)

    def _load(self, tensor: int, spot: _Spot | None) -> Value:
        """The elements at a spot, or of the row; nothing is read where there are none."""
        place = self._place_of(tensor, spot)
        if spot is None or spot.mask is None:
            return self._read(tensor, place, self._lanes(spot))
        k, type_ = self.k, self.plan.tensors[tensor].element.computed
        found = k.variable(k.constant(0, type_, self._lanes(spot)))
        with k.when(spot.mask):
            found.value = self._read(tensor, place, self._lanes(spot))
        return found.value

    def _read(self, tensor: int, place: Value, lanes: int) -> Value:
        return read_lanes(self.k, tensor, self.plan.tensors[tensor].move, place, lanes)

    def _write(self, one: Pass, spots: Sequence[_Spot], found: Mapping[int, Value]) -> None:
        for spot in spots if one.writes else ():
            value = self._value_of(spot, found)
            with self.k.when(self.is_one if spot.mask is None else self.is_one & spot.mask):
                for number, tensor in one.writes:
                    self._store(tensor, spot, value(number).splat(self._lanes(spot)))

    def _store(self, tensor: int, spot: _Spot | None, value: Value) -> None:
        write_lanes(self.k, tensor, self.plan.tensors[tensor].move, self._place_of(tensor, spot), value)

    # ---- folds

    def fold(self, number: int) -> Fold:
        """The reduction of a number."""
        step = self.plan.steps[number]
        assert isinstance(step, Fold), "passes list folds by number"
        return step

    def start(self, number: int) -> Kept:
        """What a reduction keeps of nothing."""
        fold = self.fold(number)
        type_ = self.plan.steps[fold.operand].result.computed
        return REDUCTIONS[fold.reducer].start(self.k, type_, self.spread.vector)

    def _added(self, number: int, kept: Kept, spots: Sequence[_Spot], found: Mapping[int, Value]) -> Kept:
        fold = self.fold(number)
        for spot in spots:
            more = REDUCTIONS[fold.reducer].add(kept, self._value_of(spot, found)(fold.operand), self._position(spot))
            kept = chosen(self.k, spot.mask, more, kept)
        return kept

    def _position(self, spot: _Spot) -> Value:
        """In the row, of each lane."""
        first, lanes = self.k.convert(spot.number, INDEX), self._along
        return self.k.lanes(lanes) + first * lanes if lanes else first.splat(self.spread.vector)

    def merged(self, number: int, kept: Kept) -> Kept:
        """What all threads of a row keep of a reduction."""
        if number not in self._shared:
            self._shared[number] = self.place.room(kept)
        return self.place.merged(kept, REDUCTIONS[self.fold(number).reducer].merge, self._shared[number])

    def finished(self, number: int, kept: Kept) -> Value:
        """What becomes of it."""
        fold = self.fold(number)
        return rounded(REDUCTIONS[fold.reducer].finish(kept, self.k.size("length")), fold.result)

    def _folded(self, number: int, kept: Kept) -> Value:
        return self.finished(number, self.merged(number, kept))
