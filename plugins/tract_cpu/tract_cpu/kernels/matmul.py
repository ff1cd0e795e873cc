"""Matrix products: tiles of the result are summed in registers, and go through an expression before they are written.

The right matrix is packed into panels of as many columns as a tile has, a panel after the other, and in each the rows
from top to bottom; the columns that the last one lacks are zeros. The left matrix is read where it is; or blocks of its
rows are packed into scratch memory first, tile by tile, where its rows would displace each other from the cache. Sums
go along the inner axis from begin to end, so that they do not depend on how work is shared. Where that axis is long, it
is cut into pieces, which all tasks sum one after the other: between them, sums lie in the result.

Small integers and bf16 are multiplied in groups, where an instruction does so: some neighbours along the inner axis are
one number of 32 bits, in the panels and in the packed blocks, and all rows are packed. A panel begins with what sums
start at, where that is not zero.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from tract_llvm.elements.expressions import Expression, known_to_be, rounded
from tract_llvm.isa import Dot
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.caches import BYTES_AHEAD, CACHE_LINE
from tract_cpu.kernels.dots import GROUPED, DotGrouping, as_integers
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Item, Memory, Signature, Size
from tract_cpu.kernels.squares import LANES, TOGETHER, SquareSums, interleaved, pairs_of
from tract_cpu.kernels.sums import Sums, Tile, added
from tract_cpu.kernels.transpose import turned_squares

SQUARE: Final = 4
"""Squares of so many groups on each side are turned around together as blocks of the left matrix are packed."""


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """The left factors of a tile.

    ``one``: by row and step; ``pairs``: of so many rows, two by two, in a step and the next one, as squares take them.
    """

    one: Callable[[Value | int, Value], Value]
    pairs: Callable[[int, Value], list[Value]]


@frozen
class MatMulPlan:
    """``expression``: what becomes of a sum, which is its first operand, before it is written.

    ``rests``: the heights of the tiles that compute what whole ones leave over, the largest first. ``packs``: whether
    blocks of the left matrix are packed; ``in_lines``: whether neighbours in its rows lie beside each other.
    ``along_columns``: of each further operand, whether it moves along the columns of the result (else, one element is
    for all columns). ``batch``: how many loops there are over pairs of matrices. ``left``, ``right``: the types of the
    factors. ``grouping``: how products are summed in groups, as the right matrix is packed then; ``together``: whether
    the neighbours of a left group lie beside each other in memory, as they are multiplied. ``rolled``: whether the
    expression is so long that it is there once, for all rows of a tile in turn. ``masks``: whether whole vectors are
    written like parts of them, as that costs the same. ``fetches``: whether the panel behind is brought near meanwhile;
    ``asks_ahead``: whether a panel, which one tile alone reads then, is asked for a page ahead.
    ``pieces``: whether the inner axis is cut into pieces. ``stays``: of each further operand, whether it lies along the
    columns and is the same for all rows, so that a rolled expression reads it once per tile; empty where none is.
    """

    tile: Tile
    rests: tuple[int, ...]
    left: ElementType
    right: ElementType
    expression: Expression
    along_columns: tuple[bool, ...]
    batch: int
    packs: bool
    in_lines: bool
    grouping: DotGrouping | None = None
    together: bool = False
    rolled: bool = False
    masks: bool = False
    fetches: bool = False
    pieces: bool = False
    stays: tuple[bool, ...] = ()
    asks_ahead: bool = False

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "matmul"

    @property
    def turns(self) -> bool:
        """Whether what is packed of the left matrix lies so that the factors of one step are neighbours."""
        return self.grouping is not None or not self.in_lines

    @property
    def sums(self) -> ElementType:
        """The type in which products are summed."""
        return self.expression.inputs[0].computed

    @property
    def rest(self) -> int:
        """How many rows a tile has at most that is not whole."""
        return max(self.tile.rows - 1, 1)

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(*self.items())

    def items(self) -> tuple[Item, ...]:
        """The arguments of products, in order."""
        further = tuple((Memory("tensor", one), Size("row")) for one in self.expression.inputs[1:])
        return (
            *map(Size, ("rows", "columns", "depth", "whole", "tiles")),
            *([Size("piece")] if self.pieces else []),
            Memory("left", self.left),
            Size("left_row"),
            Size("left_step"),
            Memory("right", self.right),
            Each("further", further),
            Memory("result", self.expression.result),
            Size("result_row"),
            Each.loop("batch", self.batch, 3 + len(further)),
        )

    def emit(self, k: Kernel) -> None:
        """result[i, j] = expression(sum over d of left[i, d] * right[d, j], ...), for every pair of matrices.

        Task by task: a block of rows, and a panel of columns, of a pair.
        """
        product = ProductWriter(self, k)
        with product.each_piece(), k.loop("task", k.end, k.begin) as task:
            product.task(task)


class ProductWriter:
    """The product while it is written. Sizes: of the result, and of the inner axis."""

    def __init__(self, plan: MatMulPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self.rows, self.columns, self.depth = map(taken.size, ("rows", "columns", "depth"))
        # How many rows whole tiles compute, and how many tiles of rows a task has.
        self._whole, self._tiles = taken.size("whole"), taken.size("tiles")
        self._piece = taken.size("piece") if plan.pieces else self.depth
        self._done = k.index(0)
        grouping = plan.grouping
        self.steps = self.depth if grouping is None else (self.depth + (grouping.size - 1)) // grouping.size
        self.lines = self.steps + 1 if grouping is not None and grouping.flips else self.steps
        self._left, self.left_row = taken.memory("left"), taken.size("left_row")
        self._left_step = k.index(1) if plan.in_lines else taken.size("left_step")
        self._right = taken.memory("right")
        self._further = [(one.memory("tensor"), one.size("row")) for one in taken.each("further")]
        self._result, self._result_row = taken.memory("result"), taken.size("result_row")
        # For each loop over pairs: its size, and how far left, right, further operands and result move.
        self._batch = [[one.size("size"), *one.sizes("strides")] for one in taken.each("batch")]
        self.packed = k.variable(k.index(-1))
        count = (self.rows - self._whole + (plan.rest - 1)) // plan.rest + self._whole // plan.tile.rows
        self._blocks = (count + (self._tiles - 1)) // self._tiles
        self._panels = (self.columns + (plan.tile.columns - 1)) // plan.tile.columns

    @contextmanager
    def each_piece(self) -> Generator[None]:
        """What follows is done for each piece of the inner axis in turn."""
        if not self.plan.pieces:
            yield
            return
        with self.k.loop("piece", self.depth, step=self._piece) as self._done:
            self.steps = self.k.smaller(self._piece, self.depth - self._done)
            self.packed.value = self.k.index(-1)
            yield

    def task(self, task: Value) -> None:
        """One block of rows and one panel of columns, of one pair of matrices."""
        k = self.k
        block, begin, end, at = self.block_of(task)
        if self.plan.pieces:
            left = at.left.at(self._done * self._left_step)
            at = replace(at, left=left, right=at.right.at(self._done * self.plan.tile.columns))
        self.multiply(block, (begin, end), at, k.scratch(self.plan.sums if self.plan.grouping is None else GROUPED))

    def multiply(self, block: Value, rows: tuple[Value, Value], at: TilePlace, packed: Buffer) -> None:
        """A block of rows, by its number, from the first to the last, with a panel. ``packed``: where it is packed."""
        k, (begin, end) = self.k, rows
        count, whole = end - begin, k.smaller(end, self._whole) - begin
        whole = k.select(whole > 0, whole, 0)
        each = self.steps * self.plan.tile.pitch if self.plan.turns else self._apart() * self.plan.tile.rows
        if self.plan.packs:
            with k.when(self.packed.value.differs(block)):
                for height, row, number in self._tiles_of(whole, count):
                    self._pack(at.left.at(row * self.left_row), height, packed.at(number * each))
                self.packed.value = block
        share = self._share(count)
        for height, row, number in self._tiles_of(whole, count):
            fetched = None
            if self.plan.fetches:
                place = self.lines * self.plan.tile.columns + number * share * self.steps
                fetched = _Fetched(at.right.at(place), share)
            left = self._packed_factors(packed.at(number * each)) if self.plan.packs else self.factors(at, row)
            self._tile(height, left, at.below(row), fetched)

    def block_of(self, task: Value) -> tuple[Value, Value, Value, TilePlace]:
        """The block of rows of a task, by its number, its first row and the one behind its last one; the place."""
        block, first = task // self._panels, (task % self._panels) * self.plan.tile.columns
        number = block % self._blocks * self._tiles
        begin, end = self._first_row(number), self._first_row(number + self._tiles)
        place = self._of_pair(block // self._blocks).at(begin, self.left_row, first, first * self.lines)
        return block, begin, end, place

    def _apart(self) -> Value:
        """How far apart packed rows are that are not turned: an odd number of lines, which all meet in other sets."""
        line = CACHE_LINE // self.plan.sums.bytes
        return ((self.steps + (line - 1)) // line | 1) * line

    def _packed_factors(self, packed: Buffer) -> Factors:
        """Those of a packed tile."""
        k, tile, apart = self.k, self.plan.tile, self._apart()

        def pairs(height: int, step: Value) -> list[Value]:
            lines = [packed.at((step + one) * tile.pitch) for one in range(TOGETHER)]
            each = ([line.vector(row, LANES) for line in lines] for row in range(0, height, LANES))
            return [pair for two in each for pair in interleaved(k, *two)][: pairs_of(height)]

        if self.plan.turns:
            return Factors(lambda row, step: packed[step * tile.pitch + row], pairs)
        return Factors(lambda row, step: packed.at(apart * row)[step], pairs)

    def factors(self, at: TilePlace, first: Value) -> Factors:
        """Those of a tile where they are, from a row on."""
        left = at.left.at(first * self.left_row)

        def pairs(height: int, step: Value) -> list[Value]:
            rows = [left.at(self.left_row * min(one, height - 1)) for one in range(TOGETHER * pairs_of(height))]
            both = [self.groups(row, step, TOGETHER) for row in rows]
            return [self.k.joined(two) for two in zip(both[::2], both[1::2], strict=True)]

        return Factors(lambda row, step: self.factor(left.at(self.left_row * row), step), pairs)

    def _share(self, rows: Value) -> Value:
        """How much each tile of a block fetches in a step, so that all of them fetch a panel."""
        tiles = (rows + (self.plan.tile.rows - 1)) // self.plan.tile.rows
        return (tiles + (self.plan.tile.columns - 1)) // tiles

    def _first_row(self, tile: Value) -> Value:
        """Of a tile, by its number: that behind the last row where there are fewer."""
        plan, k = self.plan, self.k
        tall = self._whole // plan.tile.rows
        row = k.smaller(tile, tall) * plan.tile.rows + k.select(tile > tall, tile - tall, 0) * plan.rest
        return k.smaller(row, self.rows)

    def _tiles_of(self, whole: Value, rows: Value) -> Iterator[tuple[int, Value, Value]]:
        """Loops over the tiles of a block: their heights, where they begin, and their numbers."""
        k, begin, before = self.k, self.k.index(0), self.k.index(0)
        for height in (self.plan.tile.rows, *self.plan.rests):
            end = rows - (rows - begin) % height if height < self.plan.tile.rows else whole
            with k.loop(f"tile{height}", end, begin, height) as row:
                yield height, row, before + (row - begin) // height
            before = before + (end - begin) // height
            begin = end

    def _of_pair(self, number: Value) -> TilePlace:
        """The matrices of a pair."""
        places = [self._left, self._right, *(buffer for buffer, _ in self._further), self._result]
        for size, *strides in reversed(self._batch):
            position = number % size
            number = number // size
            places = [place.at(position * stride) for place, stride in zip(places, strides, strict=True)]
        zero = self.k.index(0)
        return TilePlace(zero, zero, places[0], places[1], tuple(places[2:-1]), places[-1])

    def _pack(self, left: Buffer, height: int, packed: Buffer) -> None:
        """packed[step, row] = left[row, step], of the rows of a tile; behind the last one anything fills a vector.

        Rows that lie along the memory stay rows: packed[row, step].
        """
        k, lanes, pitch, grouping = self.k, self.plan.tile.lanes, self.plan.tile.pitch, self.plan.grouping
        rows = [left.at(self.left_row * one) for one in range(height)]
        if not self.plan.turns:
            self._copy(rows, packed)
            return
        whole = self.steps if grouping is None else self.depth // grouping.size
        done: Value = k.index(0)
        if self.plan.together:
            width = min(SQUARE, lanes)
            done = whole - whole % width
            with k.loop("pack.lines", done, step=width) as step:
                for first in range(0, height, lanes):
                    part = [rows[min(first + one, height - 1)] for one in range(lanes)]
                    pieces = [[self.groups(one, step, width) for one in part[place::width]] for place in range(width)]
                    lines = turned_squares(k, [k.joined(one) for one in pieces], width)
                    for place, line in enumerate(lines):
                        packed.put((step + place) * pitch + first, line)
        with k.loop("pack.step", whole, done) as step:
            for one, row in enumerate(rows):
                packed[step * pitch + one] = self.factor(row, step)
        if grouping is not None:
            with k.loop("pack.rest", self.steps, whole) as step:
                for one, row in enumerate(rows):
                    packed[step * pitch + one] = self.group(row, step, grouping)

    def _copy(self, rows: Sequence[Buffer], packed: Buffer) -> None:
        """packed[row, step] = rows[row, step]"""
        k, lanes, apart = self.k, self.plan.tile.lanes, self._apart()
        done: Value = k.index(0)
        for width in (lanes, 0):
            end = self.steps - self.steps % max(width, 1)
            with k.loop("pack.row", end, done, max(width, 1)) as step:
                for one, row in enumerate(rows):
                    packed.put(apart * one + step, k.convert(row.vector(step, width), self.plan.sums))
            done = end

    def factor(self, row: Buffer, step: Value) -> Value:
        """The number of a row of the left matrix, or the whole group of them, that is multiplied in a step along it."""
        grouping = self.plan.grouping
        if grouping is None:
            return self.k.convert(row[step * self._left_step], self.plan.sums)
        return self.groups(row, step) if self.plan.together else self.group(row, step, grouping)

    def groups(self, row: Buffer, step: Value, lanes: int = 0) -> Value:
        """The groups of some steps, whose numbers lie beside each other."""
        grouping = self.plan.grouping
        assert grouping is not None  # nothing else is together
        return grouping.flipped(row.together(step * grouping.size, GROUPED, lanes))

    def group(self, row: Buffer, step: Value, grouping: DotGrouping) -> Value:
        """A group whose neighbours are read one by one. What it has beyond the last one, the panel has as zeros."""
        k, row = self.k, as_integers(row)
        places = [k.smaller(step * grouping.size + one, self.depth - 1) for one in range(grouping.size)]
        return grouping.flipped(grouping.joined([k.convert(row[one * self._left_step], GROUPED) for one in places]))

    def _tile(self, height: int, left: Factors, at: TilePlace, fetched: _Fetched | None) -> None:
        """One tile."""
        k, plan, tile = self.k, self.plan, self.plan.tile
        if plan.pieces:
            for row in self._rows_of(height, at):
                for v in range(tile.vectors):
                    row.prefetch(v * tile.lanes)
        totals = self._totals(height, left, at.right, fetched)
        if not plan.pieces:
            self.end(totals, at)
            return
        totals = added(self._begun(height, at), totals)
        with k.either(self._done + self.steps < self.depth) as (more, last):
            with more:
                for row, line in zip(self._rows_of(height, at), totals, strict=True):
                    for v, total in enumerate(line):
                        row.put(v * tile.lanes, total, k.mask(self.columns - at.column - v * tile.lanes, tile.lanes))
            with last:
                self.end(totals, at)

    def _totals(self, height: int, left: Factors, panel: Buffer, fetched: _Fetched | None) -> list[list[Value]]:
        """The sums of a tile, by rows and vectors."""
        k, plan, tile, grouping = self.k, self.plan, self.plan.tile, self.plan.grouping
        starts = range(0, tile.columns, tile.lanes)
        start = None
        if grouping is not None and grouping.flips:
            start, panel = [panel.vector(one, tile.lanes) for one in starts], panel.at(tile.columns)

        size = panel.element.bytes
        lines = range(0, tile.columns * size, CACHE_LINE) if plan.asks_ahead else ()

        def line(step: Value) -> list[Value]:
            for one in lines:
                panel.prefetch(step * tile.columns + (BYTES_AHEAD + one) // size)
            vectors = [panel.vector(step * tile.columns + one, tile.lanes) for one in starts]
            return vectors if grouping is not None else [k.convert(one, plan.sums) for one in vectors]

        def fetch(step: Value) -> None:
            if fetched is not None:
                fetched.memory.prefetch(step * fetched.each)

        def line_and_fetch(step: Value) -> list[Value]:
            fetch(step)
            return line(step)

        if grouping is not None and grouping.dot.square and height > 1:
            return self._in_squares(grouping.dot, height, left, line_and_fetch, start)
        sums = Sums(k, tile, plan.sums, height, grouping=grouping, start=start)

        def add(step: Value, to: int) -> None:
            columns = line(step)
            for one in range(height):
                sums.add(to, one, left.one(one, step).splat(tile.lanes), columns)

        return sums.along(self.steps, add, fetch)

    def _in_squares(
        self, dot: Dot, height: int, left: Factors, line: Callable[[Value], list[Value]], start: list[Value] | None
    ) -> list[list[Value]]:
        """The same, two steps at once, and a last one alone. ``line``: the columns of a step."""
        k, lanes = self.k, self.plan.tile.lanes
        zeros = [k.constant(0, self.plan.sums, lanes)] * self.plan.tile.vectors
        squares, whole = SquareSums(k, dot, height, start or zeros), self.steps - self.steps % TOGETHER
        with k.loop("depth", whole, step=TOGETHER) as step:
            both = zip(line(step), line(step + 1), strict=True)
            squares.add(left.pairs(height, step), [pair for two in both for pair in interleaved(k, *two)])
        sums = [[k.variable(total) for total in row] for row in squares.totals()]
        with k.loop("depth.rest", self.steps, whole) as step:
            columns = line(step)
            for one, row in enumerate(sums):
                factor = left.one(one, step).splat(lanes)
                for total, column in zip(row, columns, strict=True):
                    total.value = k.dots(dot, factor, column, total.value)
        return [[total.value for total in row] for row in sums]

    def _rows_of(self, height: int, at: TilePlace) -> list[Buffer]:
        """Where the rows of a tile begin in the result."""
        return [at.result.at((at.row + one) * self._result_row + at.column) for one in range(height)]

    def _begun(self, height: int, at: TilePlace) -> list[list[Value]]:
        """The sums of all pieces before, by rows and vectors."""
        k, lanes = self.k, self.plan.tile.lanes
        left = k.select(self._done > 0, self.columns - at.column, 0)
        masks = [k.mask(left - v * lanes, lanes) for v in range(self.plan.tile.vectors)]
        return [
            [row.vector(v * lanes, lanes, mask) for v, mask in enumerate(masks)] for row in self._rows_of(height, at)
        ]

    def end(self, totals: list[list[Value]], at: TilePlace) -> None:
        """Write what becomes of the sums of a tile."""
        k, tile, plan = self.k, self.plan.tile, self.plan
        if plan.masks:
            self._write(totals, at, masked=True)
            return
        with k.either(self.columns - at.column >= tile.columns) as (then, otherwise):
            with then:
                self._write(totals, at, masked=False)
            with otherwise:
                self._write(totals, at, masked=True)

    def _write(self, totals: list[list[Value]], at: TilePlace, *, masked: bool) -> None:
        """Send the sums through the expression, and write them."""
        k, tile = self.k, self.plan.tile
        starts = range(0, tile.columns, tile.lanes)
        masks = [k.mask(self.columns - at.column - start, tile.lanes) if masked else None for start in starts]
        if not self.plan.rolled:
            for one, line in enumerate(totals):
                self.write_row(line, at.row + one, at, masks)
            return
        laid = k.own(totals[0][0].type, len(totals) * tile.columns)
        for one, line in enumerate(totals):
            for start, total in zip(starts, line, strict=True):
                # Rounded here, all side by side, and not where each row waits for it.
                laid.put(one * tile.columns + start, rounded(total, self.plan.expression.inputs[0]))
        held = [self._held(at, start, mask) for start, mask in zip(starts, masks, strict=True)]
        with k.loop("row", len(totals)) as one:
            line = [self._rounded_line(laid, one * tile.columns + start) for start in starts]
            self.write_row(line, at.row + one, at.holding(held), masks)

    def _rounded_line(self, laid: Buffer, place: Value) -> Value:
        """A vector of sums that were rounded before they were laid down."""
        return known_to_be(laid.vector(place, self.plan.tile.lanes), self.plan.expression.inputs[0])

    def _held(self, at: TilePlace, start: int, mask: Value | None) -> list[Value | None]:
        """A vector of each further operand that all rows have in common, which LLVM would read again for each row."""
        lanes, stays = self.plan.tile.lanes, self.plan.stays or (False,) * len(self._further)
        return [
            source.vector(at.column + start, lanes, mask) if stay else None
            for source, stay in zip(at.further, stays, strict=True)
        ]

    def write_row(self, line: Sequence[Value], row: Value, at: TilePlace, masks: Sequence[Value | None]) -> None:
        """Send the sums of a row through the expression, and write them.

        Whole vectors go there two by two, so that what one waits for is done beside what the other waits for.
        """
        plan, lanes = self.plan, self.plan.tile.lanes
        target = at.result.at(row * self._result_row + at.column)
        count = 2 if masks[0] is None and len(line) % 2 == 0 else 1
        for v in range(0, len(line), count):
            operands = [rounded(self.k.joined(line[v : v + count]), plan.expression.inputs[0])]
            held = [at.held[v + one] for one in range(count)] if at.held else [[None] * len(self._further)]
            for (_, stride), source, along, *ready in zip(
                self._further, at.further, plan.along_columns, *held, strict=True
            ):
                there = [one for one in ready if one is not None]
                if there:
                    operands.append(self.k.joined(there))
                elif along:
                    place = row * stride + at.column + v * lanes
                    operands.append(source.vector(place, count * lanes, masks[v]))
                else:
                    operands.append(source[row * stride].splat(count * lanes))
            target.put(v * lanes, plan.expression.compute(operands), masks[v])


@dataclass(frozen=True, slots=True, eq=False)
class _Fetched:
    """What a tile brings near for the next panel: from a place on, so many elements in each step."""

    memory: Buffer
    each: Value


@dataclass(frozen=True, slots=True, eq=False)
class TilePlace:
    """A place in the result, and the matrices: the left one from its row on, the right one from its column on.

    ``further``: further operands of the expression; ``held``: vectors of them, for each vector of a row.
    """

    row: Value
    column: Value
    left: Buffer
    right: Buffer
    further: tuple[Buffer, ...]
    result: Buffer
    held: Sequence[Sequence[Value | None]] = ()

    def holding(self, held: Sequence[Sequence[Value | None]]) -> TilePlace:
        """With vectors of further operands at hand."""
        return replace(self, held=held)

    def at(self, row: Value, left_row: Value, column: Value, panel: Value) -> TilePlace:
        """From a row and a column on. ``left_row``: how far apart left rows are; ``panel``: where it begins."""
        return TilePlace(row, column, self.left.at(row * left_row), self.right.at(panel), self.further, self.result)

    def below(self, rows: Value) -> TilePlace:
        """The place so many rows further down."""
        return replace(self, row=self.row + rows)
