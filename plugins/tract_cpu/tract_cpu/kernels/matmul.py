"""Matrix products: tiles of the result are summed in registers, and go through an expression before they are written.

The right matrix is packed into panels of as many columns as a tile has, a panel after the other, and in each the rows
from top to bottom; the columns that the last one lacks are zeros. Of the left matrix, blocks of rows are packed into
scratch memory, tile by tile, where there are enough rows for a whole tile; the rows that are left over are read where
they are, in smaller tiles. Sums go along the inner axis from begin to end, so that they do not depend on how work is
shared.

Integers that surely fit 16 bits are multiplied two by two, where an instruction does so: a pair of neighbours along the
inner axis is one number of 32 bits, in the panels and in the packed blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_cpu.isa import Isa
from tract_cpu.kernels.expressions import Expression, rounded
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.language.buffers import Buffer
from tract_cpu.language.types import ElementType
from tract_cpu.language.values import Value

SMALL_TILES: Final = (8, 4, 2, 1)
"""How many rows the tiles have that compute what whole tiles leave over."""

_NARROWEST: Final = 128
"""Bits of the narrowest vectors that instruction sets have."""

SUMS_IN_FLIGHT: Final = 8
"""How many additions a processor has under way at once, about: two units, and four cycles for each."""

TILES_PER_BLOCK: Final = 8
"""How many tiles of rows are packed together, and one task computes."""


@frozen
class Tile:
    """How a product is cut.

    ``rows``: of a whole tile; ``vectors``: of ``lanes`` columns each, side by side.
    """

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Of a tile, and of a panel."""
        return self.vectors * self.lanes

    @property
    def block(self) -> int:
        """How many rows one task computes at most."""
        return self.rows * TILES_PER_BLOCK


def tile_for(isa: Isa, element: ElementType, columns: Dim | None = None, *, in_pairs: bool = False) -> Tile:
    """The tile with the most sums that fit the registers, beside a row of the panel and one element of the left.

    ``columns``: how many the result has; where they surely fit a narrower tile, its panel has fewer zeros to read.
    ``in_pairs``: whether products are summed two by two, which takes whole registers.
    """
    vectors = 2
    rows = (isa.registers - vectors - 1) // vectors
    lanes = isa.lanes(element.computed.bits)
    least = lanes if in_pairs else _NARROWEST // element.computed.bits
    while isinstance(columns, int) and columns <= vectors * lanes // 2 and vectors * lanes > least:
        vectors, lanes = (1, lanes) if vectors > 1 else (1, lanes // 2)
    return Tile(rows, vectors, lanes)


@frozen
class MatMulPlan:
    """``expression``: what becomes of a sum, which is its first operand, before it is written.

    ``along_columns``: of each further operand, whether it moves along the columns of the result (else, one element is
    for all columns). ``batch``: how many loops there are over pairs of matrices. ``left``, ``right``: the types of the
    factors. ``in_pairs``: whether products are summed two by two; the right matrix is then packed so. ``rolled``:
    whether the expression is so long that it is there once, for all rows of a tile in turn. ``masks``: whether whole
    vectors are written like parts of them, as that costs the same.
    """

    tile: Tile
    left: ElementType
    right: ElementType
    expression: Expression
    along_columns: tuple[bool, ...]
    batch: int
    in_pairs: bool = False
    rolled: bool = False
    masks: bool = False

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "matmul"

    @property
    def sums(self) -> ElementType:
        """The type in which products are summed."""
        return self.expression.inputs[0].computed

    def text(self) -> str:
        """All that it says."""
        types = f"{self.left.name} {self.right.name}"
        cut = f"{self.tile} {self.batch} {self.in_pairs} {self.rolled} {self.masks}"
        return f"matmul {cut} {types} {self.expression.text()} {self.along_columns}"

    def emit(self, k: Kernel) -> None:
        """result[i, j] = expression(sum over d of left[i, d] * right[d, j], ...), for every pair of matrices.

        Task by task: a block of rows, and a panel of columns, of a pair.
        """
        product = _Product(self, k)
        with k.loop("task", k.end, k.begin) as task:
            product.task(task)


class _Product:
    """The product while it is written. Sizes: of the result, and of the inner axis."""

    def __init__(self, plan: MatMulPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        self.rows, self.columns, self.depth = k.size(), k.size(), k.size()
        self._steps = (self.depth + 1) // 2 if plan.in_pairs else self.depth
        self._left, self._left_row, self._left_step = k.memory(plan.left), k.size(), k.size()
        self._right = k.memory(plan.right)
        further = plan.expression.inputs[1:]
        self._further = [(k.memory(one), k.size()) for one in further]
        self._result, self._result_row = k.memory(plan.expression.result), k.size()
        # For each loop over pairs: its size, and how far left, right, further operands and result move.
        self._batch = [[k.size() for _ in range(4 + len(further))] for _ in range(plan.batch)]
        self._packed = k.variable(k.index(-1))
        self._blocks = (self.rows + (plan.tile.block - 1)) // plan.tile.block
        each = (self.rows + (self._blocks - 1)) // self._blocks
        self._block = (each + (plan.tile.rows - 1)) // plan.tile.rows * plan.tile.rows
        self._panels = (self.columns + (plan.tile.columns - 1)) // plan.tile.columns

    def task(self, task: Value) -> None:
        """One block of rows and one panel of columns, of one pair of matrices."""
        k, tile = self.k, self.plan.tile
        block, first = task // self._panels, (task % self._panels) * tile.columns
        begin = (block % self._blocks) * self._block
        at = self._of_pair(block // self._blocks).at(begin, self._left_row, first, first * self._steps)
        rows = k.smaller(self.rows - begin, self._block)
        whole = rows - rows % tile.rows
        packed = k.scratch(self.plan.sums)
        with k.when(self._packed.value.differs(block)):
            self._pack(at.left, whole, packed)
            self._packed.value = block
        with k.loop("tile", whole, step=tile.rows) as row:
            self._tile(tile.rows, packed.at(row * self._steps), None, at.below(row))
        done: Value = whole
        for height in (one for one in SMALL_TILES if one < tile.rows):
            limit = rows - (rows - done) % height
            with k.loop(f"rest{height}", limit, done, height) as row:
                self._tile(height, at.left.at(row * self._left_row), self._left_row, at.below(row))
            done = limit

    def _of_pair(self, number: Value) -> _Place:
        """The matrices of a pair."""
        places = [self._left, self._right, *(buffer for buffer, _ in self._further), self._result]
        for size, *strides in reversed(self._batch):
            position = number % size
            number = number // size
            places = [place.at(position * stride) for place, stride in zip(places, strides, strict=True)]
        zero = self.k.index(0)
        return _Place(zero, zero, places[0], places[1], tuple(places[2:-1]), places[-1])

    def _pack(self, left: Buffer, rows: Value, packed: Buffer) -> None:
        """packed[tile, step, row of the tile] = left[row, step]"""
        k, tile = self.k, self.plan.tile
        with k.loop("pack.tile", rows, step=tile.rows) as row:
            target = packed.at(row * self._steps)
            with k.loop("pack.step", self._steps) as step:
                for one in range(tile.rows):
                    target[step * tile.rows + one] = self._factor(left.at((row + one) * self._left_row), step)

    def _factor(self, row: Buffer, step: Value) -> Value:
        """The number of a row of the left matrix, or the pair of numbers, that is multiplied in a step along it."""
        k, kind = self.k, self.plan.sums
        if not self.plan.in_pairs:
            return k.convert(row[step * self._left_step], kind)
        first = step * 2
        second = k.smaller(first + 1, self.depth - 1)  # beyond the last one, the panel has a zero
        low, high = (k.convert(row[one * self._left_step], kind) for one in (first, second))
        return (low & 0xFFFF) | (high << 16)

    def _tile(self, height: int, left: Buffer, left_row: Value | None, at: _Place) -> None:
        """One tile. ``left``: its factors; ``left_row``: how far apart its rows are, ``None`` if packed."""
        k, plan, tile = self.k, self.plan, self.plan.tile
        sums = Sums(k, tile, plan.sums, height, in_pairs=plan.in_pairs)
        rows = [left.at(left_row * one) for one in range(height)] if left_row is not None else []

        def add(d: Value, to: int) -> None:
            places = [d * tile.columns + v * tile.lanes for v in range(tile.vectors)]
            columns = [k.convert(at.right.vector(one, tile.lanes), plan.sums) for one in places]
            for one in range(height):
                factor = self._factor(rows[one], d) if rows else left[d * tile.rows + one]
                sums.add(to, one, factor.splat(tile.lanes), columns)

        totals = sums.along(self._steps, add)
        if plan.masks:
            self._write(totals, at, masked=True)
            return
        with k.either(self.columns - at.column >= tile.columns) as (then, otherwise):
            with then:
                self._write(totals, at, masked=False)
            with otherwise:
                self._write(totals, at, masked=True)

    def _write(self, totals: list[list[Value]], at: _Place, *, masked: bool) -> None:
        """Send the sums through the expression, and write them."""
        k, tile = self.k, self.plan.tile
        starts = range(0, tile.columns, tile.lanes)
        masks = [k.mask(self.columns - at.column - start, tile.lanes) if masked else None for start in starts]
        if not self.plan.rolled:
            for one, line in enumerate(totals):
                self._write_row(line, at.row + one, at, masks)
            return
        laid = k.own(totals[0][0].type, len(totals) * tile.columns)
        for one, line in enumerate(totals):
            for start, total in zip(starts, line, strict=True):
                laid.put(one * tile.columns + start, total)
        with k.loop("row", len(totals)) as one:
            line = [laid.vector(one * tile.columns + start, tile.lanes) for start in starts]
            self._write_row(line, at.row + one, at, masks)

    def _write_row(self, line: Sequence[Value], row: Value, at: _Place, masks: Sequence[Value | None]) -> None:
        plan, lanes = self.plan, self.plan.tile.lanes
        target = at.result.at(row * self._result_row + at.column)
        for v, (total, mask) in enumerate(zip(line, masks, strict=True)):
            operands = [rounded(total, plan.expression.inputs[0])]
            for (_, stride), source, along in zip(self._further, at.further, plan.along_columns, strict=True):
                if along:
                    operands.append(source.vector(row * stride + at.column + v * lanes, lanes, mask))
                else:
                    operands.append(source[row * stride].splat(lanes))
            target.put(v * lanes, plan.expression.compute(operands), mask)


class Sums:
    """The sums of one tile. A small tile has several chains of them, as one has to wait for each addition to end."""

    def __init__(self, k: Kernel, tile: Tile, type_: ElementType, height: int, *, in_pairs: bool = False) -> None:
        self._k, self._in_pairs = k, in_pairs
        self.chains = _power_of_two(SUMS_IN_FLIGHT // (height * tile.vectors))
        zero = k.constant(0, type_, tile.lanes)
        self._sums = [
            [[k.variable(zero) for _ in range(tile.vectors)] for _ in range(height)] for _ in range(self.chains)
        ]

    def along(self, steps: Value, add: Callable[[Value, int], None]) -> list[list[Value]]:
        """The sums, by rows and vectors, when ``add(step, chain)`` has added the products of every step."""
        k, whole = self._k, steps - steps % self.chains
        with k.loop("depth", whole, step=self.chains) as d:
            for chain in range(self.chains):
                add(d + chain, chain)
        if self.chains > 1:
            with k.loop("depth.rest", steps, whole) as d:
                add(d, 0)
        return self._totals()

    def add(self, chain: int, row: int, factor: Value, columns: Sequence[Value]) -> None:
        """Add the products of a factor with the elements of some columns to the sums of a row."""
        for total, column in zip(self._sums[chain][row], columns, strict=True):
            if self._in_pairs:
                total.value = self._k.products_of_pairs(factor, column) + total.value
            else:
                total.value = factor.times_plus(column, total.value)

    def _totals(self) -> list[list[Value]]:
        """The sums of all chains, by rows and vectors."""
        values = [[[total.value for total in row] for row in chain] for chain in self._sums]
        while len(values) > 1:
            values = [_added(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]


def _power_of_two(number: int) -> int:
    """The largest one that is not above a number, or 1."""
    return 1 << max(number.bit_length() - 1, 0)


def _added(a: list[list[Value]], b: list[list[Value]]) -> list[list[Value]]:
    return [[one + other for one, other in zip(row, below, strict=True)] for row, below in zip(a, b, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A place in the result, and the matrices: the left one from its row on, the right one from its column on."""

    row: Value
    column: Value
    left: Buffer
    right: Buffer
    further: tuple[Buffer, ...]
    result: Buffer

    def at(self, row: Value, left_row: Value, column: Value, panel: Value) -> _Place:
        """From a row and a column on. ``left_row``: how far apart left rows are; ``panel``: where it begins."""
        return _Place(row, column, self.left.at(row * left_row), self.right.at(panel), self.further, self.result)

    def below(self, rows: Value) -> _Place:
        """The place so many rows further down."""
        return replace(self, row=self.row + rows)


@frozen
class PackPlan:
    """Packs a right matrix into panels. ``across``: whether neighbours in a row lie beside each other in memory."""

    tile: Tile
    element: ElementType
    across: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pack"

    def text(self) -> str:
        """All that it says."""
        return f"pack {self.tile} {self.element.name} {self.across}"

    def emit(self, k: Kernel) -> None:
        """packed[pair, panel, d, column of the panel] = right[pair, d, column], zero where there is no such column."""
        columns, depth = k.size(), k.size()
        source, down, across, pair_stride = k.memory(self.element), k.size(), k.size(), k.size()
        packed = k.memory(self.element)
        width = self.tile.columns
        panels = (columns + (width - 1)) // width
        with k.loop("task", k.end, k.begin) as task:
            first = (task % panels) * width
            target = packed.at(task * width * depth)
            begin = source.at((task // panels) * pair_stride + first * across)
            left = columns - first
            with k.loop("depth", depth) as d:
                for v in range(0, width, self.tile.lanes):
                    mask = k.mask(left - v, self.tile.lanes)
                    line = begin.at(d * down)
                    if self.across:
                        target.put(d * width + v, line.vector(v, self.tile.lanes, mask))
                        continue
                    for lane in range(v, v + self.tile.lanes):
                        zero = k.constant(0, self.element.computed)
                        kept = k.variable(zero)
                        with k.when(left > lane):
                            kept.value = line[across * lane]
                        target[d * width + lane] = kept.value
