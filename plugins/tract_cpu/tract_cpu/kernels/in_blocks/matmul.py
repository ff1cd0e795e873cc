"""Matrix products whose right matrix lies in blocks of small integers, each block with a scale.

Few rows are multiplied with the integers as they come out of words, in f32; the sum of a block is then scaled. That is
a product less for each weight than to scale these, and sums are as exact; but products may overflow that would not. So
a tile whose sums are not finite is summed again, with weights that were scaled first. For many rows a panel is unpacked
once, to memory that stays in the cache, and multiplied as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import reduce
from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, I32
from tract_llvm.language.values import Value

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_cpu.caches import BYTES_AHEAD
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.kernels.in_blocks.bytes import BYTES
from tract_cpu.kernels.in_blocks.weights import GROUP, BlockForm, BlockReader
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.matmul import Factors, MatMulPlan, ProductWriter, TilePlace
from tract_cpu.kernels.signature import Signature
from tract_cpu.kernels.sums import added

FEW_ROWS: Final = 17
"""For as many rows a panel is unpacked to memory; for fewer, in registers, so that each is what it would be alone.

Up to 16 texts that are written at the same time have such rows. From 8 rows on, both ways take about as long.
"""

TILES_AT_ONCE: Final = 32
"""For so many tiles of rows a panel is unpacked once: beside their products, that takes no time."""

_HEIGHTS: Final = (2, 1)
"""How many of few rows are multiplied at once: as many as registers hold sums of."""

_HEIGHTS_OF_BYTES: Final = (1,)
"""The same of rows as bytes: with two at once, each took nearly twice as long."""

_CHAINS: Final = 2
"""How many sums of a block each row and column has. Always as many, so that no row depends on how many there are."""


@frozen
class BlockMatMulPlan(MatMulPlan):
    """A product with a right matrix in blocks of ``form``, which is never cut along the inner axis.

    ``few``, ``many``: whether there may be few rows, or many. ``bytes``: how few rows are multiplied as bytes, with
    codes of 4 bits; ``None`` for floats.
    """

    form: BlockForm = BlockForm(4, 8, 32, F32)
    few: bool = True
    many: bool = True
    bytes: DotGrouping | None = None

    @property
    def signature(self) -> Signature:
        """As of `MatMulPlan`; in front, what `BlockBytesPlan` makes of the rows, if that is multiplied."""
        return Signature.of(*(BYTES if self.bytes is not None else ()), *self.items())

    def emit(self, k: Kernel) -> None:
        """As of `MatMulPlan`. Few rows have a function of their own: in one with it, many ran short of registers."""
        product = BlockProduct(self, k)
        if not (self.few and self.many):
            with k.loop("task", k.end, k.begin) as task:
                product.task(task)
            return
        product.few_rows = k.apart("few", replace(self, many=False).emit)
        with k.either(product.rows < FEW_ROWS) as (few, many):
            with few:
                product.few_rows(k.begin, k.end)
            with many, k.loop("task", k.end, k.begin) as task:
                product.task(task)


def in_blocks(plan: MatMulPlan, form: BlockForm, rows: Dim, grouping: DotGrouping | None) -> BlockMatMulPlan:
    """The plan of a product of so many rows whose right matrix lies in blocks. ``grouping``: of rows as bytes."""
    few, many = (not isinstance(rows, int) or rows < FEW_ROWS), (not isinstance(rows, int) or rows >= FEW_ROWS)
    given = {one.name: getattr(plan, one.name) for one in fields(plan)}
    return BlockMatMulPlan(**given, form=form, few=few, many=many, bytes=grouping if few else None)


class BlockProduct(ProductWriter):
    """The product while it is written. ``few_rows``: calls the function for tasks of few rows, where there is one."""

    plan: BlockMatMulPlan
    few_rows: Callable[[Value, Value], None] | None = None

    def __init__(self, plan: BlockMatMulPlan, k: Kernel) -> None:
        super().__init__(plan, k)
        self._form, self._many_rows, self._grouping = plan.form, plan.many, plan.bytes
        self._deep = self.depth // plan.form.length
        if plan.bytes is not None:
            taken = plan.signature.taken(k)
            self._bytes, self._scales, self._sums = (taken.memory(one.name) for one in BYTES)
        self.lines = self._deep // plan.form.over * plan.form.whole

    def task(self, task: Value) -> None:
        """A panel of columns, for all rows or a block of them."""
        block, begin, end, at = self.block_of(task)
        if not self._many_rows:
            self.few(end - begin, at)
        elif self.few_rows is None:
            self._many(block, begin, end, at)
        else:
            with self.k.either(end - begin < FEW_ROWS) as (few, many):
                with few:
                    self.few_rows(task, task + 1)
                with many:
                    self._many(block, begin, end, at)

    def few(self, rows: Value, at: TilePlace) -> None:
        """So many rows, few, with a panel that is unpacked in registers."""
        k, begin = self.k, self.k.index(0)
        heights = _HEIGHTS if self._grouping is None else _HEIGHTS_OF_BYTES
        for height in [one for one in heights if one <= self.plan.tile.rows]:
            end = rows - (rows - begin) % height
            with k.loop(f"few{height}", end, begin, height) as row:
                if self._grouping is not None:
                    self.end(self._sums_of_bytes(height, at.row + row, at.right), at.below(row))
                    continue
                left = self.factors_of(height, at, row)
                totals = self._sums_of_codes(height, left, at.right)
                with k.either(self._is_finite(totals)) as (finite, strange):
                    with finite:
                        self.end(totals, at.below(row))
                    with strange:
                        self.end(self._sums_of_weights(height, left, at.right), at.below(row))
            begin = end

    def _many(self, block: Value, begin: Value, end: Value, at: TilePlace) -> None:
        panel = self.k.scratch(F32)
        self.unpack(at.right, panel)
        self.multiply(block, (begin, end), replace(at, right=panel), panel.at(self.depth * self.plan.tile.columns))

    def _sums_of_codes(self, height: int, left: Factors, panel: Buffer) -> list[list[Value]]:
        """The sums of a tile, by rows and vectors: codes are multiplied, and the sum of a block is scaled."""
        k, tile, form = self.k, self.plan.tile, self._form
        nothing = k.constant(0, F32, tile.lanes)
        totals = [[k.variable(nothing) for _ in range(tile.vectors)] for _ in range(height)]
        with k.loop("block", self._deep) as block:
            reader = self._reader(panel, block)
            sums = [[[k.variable(nothing) for _ in row] for row in totals] for _ in range(_CHAINS)]
            factors = [k.variable(nothing) for _ in range(height)]
            with k.loop("unit", form.length // form.unit) as number:
                units, step = reader.units(number), block * form.length + number * form.unit
                for one in range(form.unit):
                    columns = reader.codes(units, one)
                    for row in range(height):
                        factor = left.one(row, step + one).splat(tile.lanes)
                        for total, column in zip(sums[one % _CHAINS][row], columns, strict=True):
                            total.value = factor.times_plus(column, total.value)
                        if form.offset is not None:
                            factors[row].value = factors[row].value + factor
            values = added(*([[one.value for one in row] for row in chain] for chain in sums))
            scales, offsets = reader.scales_of_codes(), reader.offsets()
            for row, line in enumerate(totals):
                for v, total in enumerate(line):
                    total.value = values[row][v].times_plus(scales[v], total.value)
                    if offsets is not None:
                        total.value = factors[row].value.times_plus(offsets[v], total.value)
        return [[total.value for total in row] for row in totals]

    def _sums_of_bytes(self, height: int, first: Value, panel: Buffer) -> list[list[Value]]:
        """The sums of some rows as bytes: of a block they are exact, and then scaled. ``first``: the first row."""
        k, tile, form = self.k, self.plan.tile, self._form
        nothing = k.constant(0, F32, tile.lanes)
        totals = [[k.variable(nothing) for _ in range(tile.vectors)] for _ in range(height)]
        with k.loop("block", self._deep) as block:
            reader, sources = self._reader(panel, block), [self.source_of(first + row) for row in range(height)]
            places = [source * self._deep + block for source in sources]
            sums = self._sums_of_a_block(reader, [self._bytes.at(place * form.length) for place in places])
            scales, offsets = reader.scales(), reader.offsets()
            for place, line, found in zip(places, totals, sums, strict=True):
                scale, less = (one[place].splat(tile.lanes) for one in (self._scales, self._sums))
                for v, total in enumerate(line):
                    value = k.convert(found[v], F32) * scale
                    if form.centre:
                        value = less.times_plus(-float(form.centre), value)
                    total.value = value.times_plus(scales[v], total.value)
                    if offsets is not None:
                        total.value = less.times_plus(offsets[v], total.value)
        return [[total.value for total in row] for row in totals]

    def factors_of(self, height: int, at: TilePlace, first: Value) -> Factors:
        """Those of so many rows, from one on."""
        del height  # rows follow each other
        return self.factors(at, first)

    def source_of(self, place: Value) -> Value:
        """The row of the left matrix that a row of the result is made of."""
        return place

    def _sums_of_a_block(self, reader: BlockReader, rows: list[Buffer]) -> list[list[Value]]:
        """The sums of the products of bytes with codes without signs, by rows and vectors."""
        k, tile, grouping, form = self.k, self.plan.tile, self._grouping, self._form
        assert grouping is not None  # the callers asked
        sums = [[k.variable(k.constant(0, I32, tile.lanes)) for _ in range(tile.vectors)] for _ in rows]
        with k.loop("unit", form.length // form.unit) as number:
            units = reader.units(number)
            for place in range(form.unit // GROUP):
                columns = [form.group(words, place) for words in units]
                step = number * form.unit + place * GROUP
                for row, line in zip(rows, sums, strict=True):
                    factor = row.together(step, I32).splat(tile.lanes)
                    for total, column in zip(line, columns, strict=True):
                        total.value = k.dots(grouping.dot, factor, column, total.value)
        return [[total.value for total in row] for row in sums]

    def _sums_of_weights(self, height: int, left: Factors, panel: Buffer) -> list[list[Value]]:
        """The same, of weights that are scaled before they are multiplied."""
        k, tile = self.k, self.plan.tile
        nothing = k.constant(0, F32, tile.lanes)
        totals = [[k.variable(nothing) for _ in range(tile.vectors)] for _ in range(height)]
        for step, columns in self._weights(panel):
            for row, line in enumerate(totals):
                factor = left.one(row, step).splat(tile.lanes)
                for total, column in zip(line, columns, strict=True):
                    total.value = factor.times_plus(column, total.value)
        return [[total.value for total in row] for row in totals]

    def unpack(self, panel: Buffer, target: Buffer) -> None:
        """target[step, column] = the weight there"""
        tile = self.plan.tile
        for step, columns in self._weights(panel):
            for v, column in enumerate(columns):
                target.put(step * tile.columns + v * tile.lanes, column)

    def _weights(self, panel: Buffer) -> Iterator[tuple[Value, list[Value]]]:
        """Loops over the steps of a panel, with the weights of each."""
        k, form = self.k, self._form
        with k.loop("block", self._deep) as block:
            reader = self._reader(panel, block)
            scales, offsets = reader.scales_of_codes(), reader.offsets()
            with k.loop("unit", form.length // form.unit) as number:
                units, step = reader.units(number), block * form.length + number * form.unit
                for one in range(form.unit):
                    found = [code * scale for code, scale in zip(reader.codes(units, one), scales, strict=True)]
                    if offsets is not None:
                        found = [weight + more for weight, more in zip(found, offsets, strict=True)]
                    yield step + one, found

    def _reader(self, panel: Buffer, block: Value) -> BlockReader:
        reader = BlockReader(self.k, self._form, self.plan.tile, panel, block)
        reader.fetch(BYTES_AHEAD)
        return reader

    def _is_finite(self, totals: list[list[Value]]) -> Value:
        """Whether all sums are: a number less itself is 0 then."""
        nothing = reduce(lambda a, b: a + b, (total - total for row in totals for total in row))
        return ~self.k.any(nothing.differs(0))
