"""Attention: a softmax of products of rows, with which other rows are mixed, without a matrix of scores in memory.

A task takes as many queries as two vectors have lanes, or one where fewer are left. It turns them, so that their
numbers lie beside each other, and computes their scores with all keys, in memory of its own: a line of queries per key.
So softmax goes from line to line, and nothing is summed across lanes; keys and values are read where they are, number
by number, whatever their strides. Sums go from begin to end, and do not depend on how work is shared.

Where an instruction sums the products of neighbours, as those of bf16, these are groups: neighbours along queries and
keys in the first product. In the second one they are powers of neighbouring keys, rounded to the type of the values,
whose rows are put together in groups once for all queries that read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import ElementType, bits_of
from tract_llvm.language.values import Value

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_cpu.kernels.dots import GROUPED, DotGrouping, as_integers
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.query import SingleQuery
from tract_cpu.kernels.signature import Each, Memory, Signature, Size
from tract_cpu.kernels.sums import SMALL_TILES, Sums, Tile, tile_for
from tract_cpu.kernels.transpose import PIECE_BITS, turned_rows

_SIDE_BY_SIDE: Final = 2
"""Of how many vectors powers are computed beside each other."""


def attention_tiles(isa: Isa, element: ElementType, queries: Dim) -> tuple[Tile, ...]:
    """The tile of a product, and one for a single vector of queries, where some task may have no more."""
    tile = tile_for(isa, element)
    narrow = Tile(SMALL_TILES[0], 1, tile.lanes)
    if not isinstance(queries, int):
        return tile, narrow
    if queries <= tile.lanes:
        return (narrow,)
    return (tile, narrow) if 0 < queries % tile.columns <= tile.lanes else (tile,)


@frozen
class AttentionPlan:
    """``element``: the type of queries, keys and values. ``scores``: what becomes of a product, its first operand.

    ``tiles``: of keys and queries, the widest first, the other one for tasks of fewer queries.
    ``along``: of each further operand, whether it moves along the queries (else, one element is for all of them).
    ``powers``: of a score and the largest one. ``result``: the type of what is written. ``batch``: loops around.
    ``grouping``: how products are summed in groups. ``single``: how many vectors a key and a value take, where one
    query alone is computed as by `QueryPlan`; 0 where it is not. ``zeroes``: whether shares that are NaN, as those of a
    query that sees no key, count as 0.
    """

    tiles: tuple[Tile, ...]
    element: ElementType
    scores: Expression
    along: tuple[bool, ...]
    powers: Expression
    result: ElementType
    batch: int
    grouping: DotGrouping | None = None
    single: tuple[int, int] = (0, 0)
    zeroes: bool = False

    @property
    def vectors(self) -> tuple[int, int, int]:
        """Lanes of a vector; how many vectors a key and a value take, where they are whole vectors."""
        return self.tiles[0].lanes, *self.single

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "attention"

    @property
    def sums(self) -> ElementType:
        """The type in which products are summed."""
        return self.element.computed

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        rows = Size("row"), Size("step")
        factors = tuple((Memory("tensor", self.element), *rows) for _ in range(3))
        further = tuple((Memory("tensor", one), Size("step")) for one in self.scores.inputs[1:])
        return Signature.of(
            *map(Size, ("queries", "keys", "depth", "width")),
            Each("factors", factors),
            Each("further", further),
            Memory("result", self.result),
            Size("result_row"),
            Size("result_step"),
            Each.loop("batch", self.batch, 4 + len(further)),
        )

    def emit(self, k: Kernel) -> None:
        """result[i] = sum over j of share[i, j] * value[j]; share[i] = softmax of scores(query[i] * key[j], ...)."""
        attention = _Attention(self, k)
        with k.loop("task", k.end, k.begin) as task:
            attention.task(task)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows of numbers in memory: how far apart they are, and their numbers."""

    memory: Buffer
    row: Value
    step: Value

    def moved(self, by: Value) -> _Rows:
        """The ones that begin so many elements further on."""
        return replace(self, memory=self.memory.at(by))

    def at(self, row: Value) -> Buffer:
        """The begin of a row."""
        return self.memory.at(row * self.row)


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """What one task reads and writes, from its first query on."""

    queries: _Rows
    keys: _Rows
    values: _Rows
    further: tuple[Buffer, ...]
    result: _Rows


class _Attention:
    """The kernel while it is written. Sizes: how many queries and keys, how long they are, and how long values are."""

    def __init__(self, plan: AttentionPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self.queries, self.keys, self.depth, self.width = map(taken.size, ("queries", "keys", "depth", "width"))
        queries, keys, values = (
            _Rows(one.memory("tensor"), one.size("row"), one.size("step")) for one in taken.each("factors")
        )
        self.further = [(one.memory("tensor"), one.size("step")) for one in taken.each("further")]
        further = tuple(memory for memory, _ in self.further)
        result = _Rows(taken.memory("result"), taken.size("result_row"), taken.size("result_step"))
        self._place = _Place(queries, keys, values, further, result)
        # For each loop around: its size, and how far queries, keys, values, further operands and result move.
        self._batch = [[one.size("size"), *one.sizes("strides")] for one in taken.each("batch")]
        self.scratch = k.scratch(plan.sums)
        self.read = k.variable(k.index(-1))

    def task(self, task: Value) -> None:
        """The queries of one task, or one that is alone."""
        if not any(self.plan.single):
            self._several(task)
            return
        with self.k.either(self.queries.equals(1)) as (one, several):
            with one:
                self._single(self._of_batch(task))
            with several:
                self._several(task)

    def _single(self, place: _Place) -> None:
        """One query, with vectors along its numbers and along the keys."""
        k, lanes, strides = self.k, self.plan.vectors[0], [stride for _, stride in self.further]
        single = SingleQuery(self.plan, k, self.keys, (place.keys.row, place.values.row))

        def further(first: Value, mask: Value) -> list[Value]:
            places = [(k.lanes(lanes) + first) * stride for stride in strides]
            return [memory.gather(at, mask) for memory, at in zip(place.further, places, strict=True)]

        factors = place.queries.memory, place.keys.memory, place.values.memory
        single.compute(factors, further, place.result.memory)

    def _several(self, task: Value) -> None:
        """As many queries as the widest tile has columns, or those that are left."""
        wide, *narrow = self.plan.tiles
        blocks = (self.queries + (wide.columns - 1)) // wide.columns
        first, number = task % blocks * wide.columns, task // blocks
        place = self._of_batch(number)
        if not narrow:
            _Line(self, wide, place, first).compute(number)
            return
        with self.k.either(self.queries - first > wide.lanes) as (many, few):
            with many:
                _Line(self, wide, place, first).compute(number)
            with few:
                _Line(self, narrow[0], place, first).compute(number)

    def _of_batch(self, number: Value) -> _Place:
        place = self._place
        rows = [place.queries, place.keys, place.values, place.result]
        further = list(place.further)
        for size, *strides in reversed(self._batch):
            position = number % size
            number = number // size
            moves = [position * stride for stride in strides]
            rows = [one.moved(by) for one, by in zip(rows, [*moves[:3], moves[-1]], strict=True)]
            further = [one.at(by) for one, by in zip(further, moves[3:-1], strict=True)]
        queries, keys, values, result = rows
        return _Place(queries, keys, values, tuple(further), result)


class _Line:
    """Queries side by side, in as many columns as a tile has, with all keys and values; they begin at ``first``."""

    def __init__(self, whole: _Attention, tile: Tile, place: _Place, first: Value) -> None:
        self.plan, self.k, self.whole = whole.plan, whole.k, whole
        self.tile, self.columns, self.place, self.first = tile, tile.columns, place, first
        self.keys, self.depth, self.width = whole.keys, whole.depth, whole.width
        self.left = whole.queries - first
        self._turned = whole.scratch
        self._scores = self._turned.at(self.depth * self.columns)
        self._mixed = self._scores.at(self.keys * self.columns).of(self.plan.result)
        # At one place for all tasks, as it may be read by the next one.
        self._grouped = whole.scratch.at((self.depth + self.keys + self.width) * self.plan.tiles[0].columns).of(GROUPED)

    def compute(self, number: Value) -> None:
        """What is mixed for each query. ``number``: of the keys and values, which may have been read before."""
        k, place, read = self.k, self.place, self.whole.read
        self._turn(place.queries)
        self._products((self.keys, self._steps(self.depth)), self._along(place.keys), self._turned, self._scores)
        total = self._shares()
        if self.plan.zeroes:
            total = self._zeroed(total)
        share = where(total.equals(0), total, total.like(1) / total)  # it is 0 where there are no keys
        values = replace(place.values, row=place.values.step, step=place.values.row)
        if self.plan.grouping is not None:
            with k.when(read.value.differs(number)):
                self._group_values(place.values, self.plan.grouping)
                read.value = number
            self._group_powers(self.plan.grouping)
            values = _Rows(self._grouped, k.index(1), self.width)
        sizes = (self.width, self._steps(self.keys))
        self._products(sizes, values, self._scores, self._mixed, lambda mixed: mixed * share)
        self._write(place.result, k.smaller(self.left, self.columns))

    def _steps(self, count: Value) -> Value:
        """In how many steps so many products are summed."""
        grouping = self.plan.grouping
        return count if grouping is None else (count + (grouping.size - 1)) // grouping.size

    def _along(self, rows: _Rows) -> _Rows:
        """Rows whose numbers are read step by step."""
        grouping = self.plan.grouping
        return rows if grouping is None else replace(rows, step=rows.step * grouping.size)

    def _group_values(self, values: _Rows, grouping: DotGrouping) -> None:
        """grouped[step, number] = those of the values of some neighbouring keys, zeros behind the last one."""
        k, lanes = self.k, self.tile.lanes
        with k.loop("group", self._steps(self.keys)) as step, k.loop("number", self.width, step=lanes) as number:
            mask, found = k.mask(self.width - number, lanes), list[Value]()
            for one in range(grouping.size):
                key = step * grouping.size + one
                row = as_integers(values.at(key))
                there = k.select(key < self.keys, mask, mask.like(0)) if one else mask
                found.append(k.convert(row.vector(number, lanes, there), GROUPED))
            self._grouped.put(step * self.width + number, grouping.joined(found), mask)

    def _group_powers(self, grouping: DotGrouping) -> None:
        """The powers of neighbouring keys in groups, in their place."""
        k, columns, powers = self.k, self.columns, as_integers(self._scores.of(grouping.left))
        with k.loop("pair", self._steps(self.keys)) as step:
            found = list[Value]()
            for one in range(grouping.size):
                key = step * grouping.size + one
                power = powers.vector(k.smaller(key, self.keys - 1) * columns, columns)
                found.append(k.convert(k.select(key < self.keys, power, power.like(0)), GROUPED))
            self._scores.of(GROUPED).put(step * columns, grouping.joined(found))

    def _turn(self, queries: _Rows) -> None:
        """turned[step, column] = query[column, step]; columns beyond the last query have its numbers."""
        k, columns, grouping = self.k, self.columns, self.plan.grouping
        rows = [queries.at(self.first + k.smaller(k.index(one), self.left - 1)) for one in range(columns)]
        turned = self._turned if grouping is None else self._turned.of(GROUPED)
        step_of = self._along(queries).step

        def numbers(row: Buffer, step: Value, count: int) -> Value:
            if grouping is None:
                return k.convert(row.vector(step * step_of, count), self.plan.sums)
            return row.together(step * step_of, GROUPED, count)

        piece, steps = PIECE_BITS // turned.element.bits, self._steps(self.depth)
        whole = _where_one(k, queries.step, steps - steps % piece)
        with k.loop("square", whole, step=piece) as step:
            for begin in range(0, columns, self.tile.lanes):
                squares = turned_rows(k, lambda n, b=begin: numbers(rows[b + n], step, piece), (self.tile.lanes, piece))
                for one, line in enumerate(squares):
                    turned.put((step + one) * columns + begin, line)
        with k.loop("turn", steps, whole) as step:
            for column, row in enumerate(rows):
                turned[step * columns + column] = numbers(row, step, 0)

    def _products(
        self,
        sizes: tuple[Value, Value],
        rows: _Rows,
        columns: Buffer,
        target: Buffer,
        then: Callable[[Value], Value] = lambda total: total,
    ) -> None:
        """target[row, column] = sum over d of rows[row, d] * columns[d, column], tile by tile.

        ``sizes``: how many rows there are, and how many products are summed. ``then``: what becomes of a line of sums.
        """
        count, depth = sizes
        k, tile = self.k, self.tile
        lines = columns if self.plan.grouping is None else columns.of(GROUPED)
        done: Value = k.index(0)
        for height in (tile.rows, *(one for one in SMALL_TILES if one < tile.rows)):
            limit = count - (count - done) % height
            with k.loop(f"rows{height}", limit, done, height) as row:
                places = [rows.at(row + one) for one in range(height)]
                sums = Sums(k, tile, self.plan.sums, height, grouping=self.plan.grouping)

                def add(d: Value, to: int, places: Sequence[Buffer] = places, sums: Sums = sums) -> None:
                    vectors = [lines.vector(d * tile.columns + n * tile.lanes, tile.lanes) for n in range(tile.vectors)]
                    for one, place in enumerate(places):
                        sums.add(to, one, self._factor(place, d * rows.step), vectors)

                for one, totals in enumerate(sums.along(depth, add)):
                    target.put((row + one) * tile.columns, then(k.joined(totals)))
            done = limit

    def _factor(self, row: Buffer, place: Value) -> Value:
        """A number of a row, or a group of them, in every lane."""
        lanes = self.tile.lanes
        if self.plan.grouping is None:
            return self.k.convert(row.splat(place, lanes), self.plan.sums)
        return row.together(place, GROUPED).splat(lanes)

    def _shares(self) -> Value:
        """Turn products into powers of scores. Returns their sums."""
        k, plan, columns = self.k, self.plan, self.columns
        largest = k.variable(k.constant(float("-inf"), plan.sums, columns))
        for key, count in self._side_by_side("score"):
            operands = [rounded(self._scores.vector(key * columns, count * columns), plan.scores.inputs[0])]
            scores = plan.scores.compute([*operands, *self._further(key, count)])
            self._scores.put(key * columns, scores)
            for score in scores.parts(count):
                largest.value = where(score > largest.value, score, largest.value)
        powers = self._scores if plan.grouping is None else self._scores.of(plan.grouping.left)
        total = k.variable(k.constant(0, plan.sums, columns))
        for key, count in self._side_by_side("power"):
            scores = self._scores.vector(key * columns, count * columns)
            found = rounded(plan.powers.compute([scores, k.joined([largest.value] * count)]), powers.element)
            powers.put(key * columns, found)
            for power in found.parts(count):
                total.value = total.value + power
        return total.value

    def _further(self, key: Value, count: int) -> Iterator[Value]:
        """The further operands of the scores of some keys, one after the other."""
        k, columns, mask = self.k, self.columns, self.k.mask(self.left, self.columns)
        for (_, stride), memory, along in zip(self.whole.further, self.place.further, self.plan.along, strict=True):
            rows = [memory.at((key + one) * stride) for one in range(count)]
            lines = [row.vector(self.first, columns, mask) if along else row[0].splat(columns) for row in rows]
            yield k.joined(lines)

    def _side_by_side(self, name: str) -> Iterator[tuple[Value, int]]:
        """Loops over keys, with how many are there at once: what one waits for is done beside what another does."""
        done: Value = self.k.index(0)
        for count in sorted({_SIDE_BY_SIDE // self.tile.vectors, 1}, reverse=True):
            end = self.keys - self.keys % count
            with self.k.loop(f"{name}{count}", end, done, count) as key:
                yield key, count
            done = end

    def _zeroed(self, total: Value) -> Value:
        """Put 0 in the place of powers whose sum is NaN. Returns the sums, 0 for these."""
        k, plan, columns = self.k, self.plan, self.columns
        powers = self._scores if plan.grouping is None else self._scores.of(plan.grouping.left)
        with k.when(k.any(total.differs(total))), k.loop("zero", self.keys) as key:
            power = powers.vector(key * columns, columns)
            powers.put(key * columns, where(total.equals(total), power, power.like(0)))
        return where(total.equals(total), total, total.like(0))

    def _write(self, result: _Rows, count: Value) -> None:
        """result[column, step] = mixed[step, column]"""
        k, columns, lanes, bits = self.k, self.columns, self.tile.lanes, bits_of(self.plan.result)
        mixed, piece = self._mixed.of(bits), min(PIECE_BITS // bits.bits, lanes)
        rows = count - count % piece
        steps = _where_one(k, result.step, self.width - self.width % lanes)
        with k.loop("column.square", rows, step=piece) as column, k.loop("step.square", steps, step=lanes) as step:
            squares = turned_rows(k, lambda n: mixed.vector((step + n) * columns + column, piece), (lanes, piece))
            for one, line in enumerate(squares):
                result.at(self.first + column + one).of(bits).put(step, line)
        for begin, end, done in ((k.index(0), rows, steps), (rows, count, k.index(0))):
            with k.loop("column", end, begin) as column:
                row = result.at(self.first + column).of(bits)
                with k.loop("step", self.width, done) as step:
                    row[step * result.step] = mixed[step * columns + column]


def _where_one(k: Kernel, step: Value, count: Value) -> Value:
    """A count where numbers lie beside each other, else 0."""
    return k.select(step.equals(1), count, count.like(0))
