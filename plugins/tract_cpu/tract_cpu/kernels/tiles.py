"""Matrix products in tiles: registers that hold 16 rows of 16 numbers, and are multiplied as a whole.

The right matrix is packed into panels as for other products that are summed in groups, with zeros behind the last
group, so that there are whole tiles. Blocks of rows of the left one are packed row by row, likewise. Two tiles of each
factor are multiplied into four tiles of sums, two below two, which go through memory to the expression behind. What
the last tile has beyond the last row is never read.
"""

from __future__ import annotations

from typing import Final

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.tiles import ROWS, STEPS, tiles_of
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.dims import Dim, ceil_div
from tract_cpu.kernels.dots import GROUPED
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.matmul import MatMulPlan, ProductWriter, TilePlace
from tract_cpu.kernels.sums import Tile, tile_for

TALL: Final = 2
"""How many tiles lie below each other."""

LEFT: Final = 4
RIGHT: Final = 6
"""The first tiles of the factors, behind those of the sums."""


def tiles_for(isa: Isa, element: ElementType, columns: Dim) -> Tile:
    """What is multiplied at once, as a `Tile` whose rows are those of two tiles."""
    tile = tile_for(isa, element, columns, whole=True)
    return Tile(TALL * ROWS, tile.vectors, STEPS)


def whole_lines(lines: Dim) -> Dim:
    """How many lines whole tiles have."""
    return ceil_div(lines, STEPS) * STEPS


def packed_row(lines: Dim) -> Dim:
    """How far apart packed rows of the left matrix are: an odd number of tiles, so that they meet in other sets."""
    whole = whole_lines(lines)
    return whole + STEPS - whole // STEPS % 2 * STEPS


class TilesPlan(MatMulPlan):
    """Its fields are those of `MatMulPlan`; the left matrix is packed, and nothing is cut along the inner axis."""

    def emit(self, k: Kernel) -> None:
        """As of `MatMulPlan`."""
        product = _Tiled(self, k)
        with product.registers.configured(), k.loop("task", k.end, k.begin) as task:
            product.task(task)


class _Tiled(ProductWriter):
    """The product while it is written."""

    def __init__(self, plan: TilesPlan, k: Kernel) -> None:
        super().__init__(plan, k)
        self.registers = tiles_of(k)
        self.lines = (self.steps + (STEPS - 1)) // STEPS * STEPS
        self._pitch = self.lines + STEPS - self.lines // STEPS % 2 * STEPS
        self._laid = k.own(plan.sums, TALL * ROWS * plan.tile.columns)

    def task(self, task: Value) -> None:
        """One block of rows and one panel of columns, of one pair of matrices."""
        k = self.k
        block, begin, end, at = self.block_of(task)
        packed = k.scratch(GROUPED)
        with k.when(self.packed.value.differs(block)):
            with k.loop("pack", end - begin) as row:
                self._pack_row(at.left.at(row * self.left_row), packed.at(row * self._pitch))
            self.packed.value = block
        with k.loop("tiles", end - begin, step=TALL * ROWS) as row:
            height = k.smaller(end - begin - row, TALL * ROWS)
            with k.either(height > ROWS) as (tall, low):
                for many, branch in enumerate((low, tall), start=1):
                    with branch:
                        self._multiply(many, packed.at(row * self._pitch), at.right)
            self._finish(height, at.below(row))

    def _pack_row(self, row: Buffer, packed: Buffer) -> None:
        """The groups of a row, and zeros behind them, so that there are whole tiles."""
        k, grouping = self.k, self.plan.grouping
        assert grouping is not None  # there are no other tiles
        whole, done = self.depth // grouping.size, k.index(0)
        if self.plan.together:
            done = whole - whole % STEPS
            with k.loop("pack.line", done, step=STEPS) as step:
                packed.put(step, self.groups(row, step, STEPS))
        with k.loop("pack.step", whole, done) as step:
            packed[step] = self.factor(row, step)
        with k.loop("pack.rest", self.steps, whole) as step:
            packed[step] = self.group(row, step, grouping)
        with k.loop("pack.zero", self.lines, self.steps) as step:
            packed[step] = k.constant(0, GROUPED)

    def _multiply(self, tall: int, left: Buffer, right: Buffer) -> None:
        """Sum the products of so many tiles of rows with a panel, and lay the sums down."""
        k, tiles, tile, grouping = self.k, self.registers, self.plan.tile, self.plan.grouping
        assert grouping is not None  # there are no other tiles
        places = [(one, v, one * tile.vectors + v) for one in range(tall) for v in range(tile.vectors)]
        for *_, sums in places:
            tiles.clear(sums)
        with k.loop("depth", self.lines, step=STEPS) as step:
            for v in range(tile.vectors):
                tiles.load(RIGHT + v, right.at(step * tile.columns + v * STEPS), tile.columns)
            for one in range(tall):
                tiles.load(LEFT + one, left.at(self._pitch * (one * ROWS) + step), self._pitch)
            for one, v, sums in places:
                tiles.add_products(grouping.dot, sums, LEFT + one, RIGHT + v)
        for one, v, sums in places:
            tiles.store(sums, self._laid.at(one * ROWS * tile.columns + v * STEPS), tile.columns)

    def _finish(self, height: Value, at: TilePlace) -> None:
        """Write what becomes of the sums of so many rows."""
        k, tile = self.k, self.plan.tile
        starts = range(0, tile.columns, tile.lanes)
        masks = [k.mask(self.columns - at.column - start, tile.lanes) for start in starts]
        with k.loop("row", height) as one:
            line = [self._laid.vector(one * tile.columns + start, tile.lanes) for start in starts]
            self.write_row(line, at.row + one, at, masks)
