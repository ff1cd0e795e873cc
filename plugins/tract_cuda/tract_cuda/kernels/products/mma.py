"""Products on tensor cores: factors are copied to shared memory some tiles ahead, and sums are in f32 or i32.

The layout in shared memory, and the order of what is done in each round, are those of CUTLASS's pipelined kernels:
https://github.com/NVIDIA/cutlass/blob/main/media/docs/cpp/efficient_gemm.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, I32, U8
from tract_llvm.language.values import Value, Variable

from tract_core.frozen import frozen
from tract_cuda.kernels.product import AXES, Block, parameters_of_tiles
from tract_cuda.kernels.sums import inputs_at
from tract_cuda.kernels.windows import OpenWindows, Windows
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.language.matrices import (
    PIECE,
    STEP,
    Factors,
    accumulate,
    commit,
    copy_later,
    fragments,
    taken,
    wait,
    zeros,
)


@frozen
class MmaTile:
    """``rows``, ``columns``: of the result for each block; ``depth``: summed at once; ``stages``: tiles on their way.

    ``down``, ``across``: how many warps share the rows and the columns. Rows and columns of a warp are multiples of 16,
    and the depth is one of 32 bytes.
    """

    rows: int
    columns: int
    depth: int
    stages: int
    down: int
    across: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.down * self.across * WARP


@frozen
class MmaPlan:
    """A product of [pairs, rows, depth] and [pairs, depth, columns].

    ``factors``: their types. The left one lies with the depth side by side, and so does the right one where ``inner``,
    as bytes do, else with its columns; in pieces of 16 bytes, at multiples of which all rows begin. ``parts``,
    ``windows``, ``expression``: as in `TilePlan`. ``pairs``: whether columns of the result lie side by side, in whole
    pairs.
    """

    tile: MmaTile
    factors: Factors
    inner: bool
    parts: bool
    expression: Expression
    windows: Windows | None = None
    pairs: bool = False

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "mma"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.tile.threads

    @property
    def parameters(self) -> Sequence[Parameter]:
        """As of `TilePlan`."""
        return parameters_of_tiles(self.factors.left, self.factors.right, self.expression, self.windows)

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of left[p, i, d] * right[p, d, j] over d, operands[p, i, j], ...)"""
        k.least_blocks = 1 if self.factors.left is F32 else 0  # else `ptxas` spills fragments that are rounded
        MmaTileWriter(self, k).write()


_APART: Final = 8
"""Pieces that lie in all banks of shared memory."""


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One factor as rows of pieces. ``rows``: of a tile; ``pieces``: in a row; ``bytes``: of a tile.

    ``begin``, ``step``: where the first row is, and from one row to the next; ``first``: which row that is, of
    ``count``. ``along``: whether the depth lies along a row, rather than rows along the depth. ``memory``, ``shared``:
    where it is read and kept.
    """

    memory: Buffer
    shared: Buffer
    rows: int
    pieces: int
    begin: Value
    step: Value
    first: Value
    count: Value
    along: bool

    @property
    def bytes(self) -> int:
        """Of a tile."""
        return self.rows * self.pieces * PIECE

    def place(self, row: Value, piece: Value) -> Value:
        """Where a piece lies in a tile, in bytes: turned so that neighbouring rows lie in other banks."""
        most = min(self.pieces, _APART)
        turned = (row >> 1 if most == 4 else row) & (most - 1)
        return (row * self.pieces + (piece ^ turned)) * PIECE


class MmaTileWriter:
    """A tile while it is written."""

    def __init__(self, plan: MmaPlan, k: Kernel) -> None:
        self.plan, self.k, self.tile = plan, k, plan.tile
        self.factors, self.each = plan.factors, plan.factors.each
        self.block = Block.of(k, self.tile.rows, self.tile.columns, parts=plan.parts)
        self.down, self.across = k.warp() // self.tile.across, k.warp() % self.tile.across
        self.begin, self.end = self.block.depth()
        self.left, self.right = self._side("left"), self._side("right")
        self.windows: OpenWindows | None = None
        if plan.windows is not None:
            rows = [self.block.row + row for row, _ in self._pieces(self.left)]
            self.windows = plan.windows.opened(k, self.block.pair, rows)

    def _side(self, name: str) -> _Side:
        k, tile, block, left = self.k, self.tile, self.block, name == "left"
        pair, outer, inner = (k.sizes(f"{name}.", AXES)[n] for n in ((0, 1, 2) if left else (0, 2, 1)))
        along = left or self.plan.inner
        length = tile.rows if left else tile.columns
        first, count = (block.row, block.rows) if left else (block.column, block.columns)
        rows, pieces = (length, tile.depth // self.each) if along else (tile.depth, length // self.each)
        shared = k.shared(U8, rows * pieces * PIECE * tile.stages)
        step = outer if along else inner
        return _Side(k.memory(name), shared, rows, pieces, block.pair * pair, step, first, count, along)

    # ---- copies

    def _pieces(self, side: _Side) -> list[tuple[Value, Value]]:
        """For each piece that a thread copies, its row in the tile, and which one it is there."""
        whole, threads = side.rows * side.pieces, self.plan.threads
        assert whole % threads == 0, "tiles are such that all threads copy"
        here = [self.k.thread() + first for first in range(0, whole, threads)]
        return [(one // side.pieces, one % side.pieces) for one in here]

    def _fetch(self, depth: Value, stage: Value) -> None:
        """Have the tile at a depth copied to a stage: those of neighbouring depths one behind the other."""
        self._copy((self.left, self.right), depth, stage)

    def _copy(self, sides: Sequence[_Side], depth: Value, stage: Value) -> None:
        k = self.k
        for side in sides:
            for number, (row, piece) in enumerate(self._pieces(side)):
                place, inside = self._source(side, number, depth, (row, piece))
                size = k.select(inside, k.index(PIECE), k.index(0))
                target = side.shared.address(stage * side.bytes + side.place(row, piece))
                copy_later(k, target, side.memory.address(k.select(inside, place, place.like(0))), size)
        commit(k)

    def _source(self, side: _Side, number: int, depth: Value, at: tuple[Value, Value]) -> tuple[Value, Value]:
        """Where a piece comes from, and whether it is inside."""
        row, piece = at
        if not side.along:
            line, column = depth + row, side.first + piece * self.each
            return side.begin + line * side.step + column, (line < self.end) & (column < side.count)
        line, inner = side.first + row, piece * self.each
        inside = (line < side.count) & (depth + inner < self.end)
        if self.windows is None or side is not self.left:
            return side.begin + line * side.step + depth + inner, inside
        place, within = self.windows.at(number, depth, inner)
        return place, inside & within

    # ---- sums

    def write(self) -> None:
        """The whole kernel."""
        k, tile = self.k, self.tile
        for stage in range(tile.stages - 1):
            self._fetch(self.begin + stage * tile.depth, k.index(stage))
        high, wide = tile.rows // tile.down // 16, tile.columns // tile.across // 8
        sums = [[zeros(k, self.factors.sums) for _ in range(wide)] for _ in range(high)]
        stage = k.variable(k.index(0))
        with k.loop("depth", self.end, self.begin, tile.depth) as depth:
            wait(k, tile.stages - 2)
            k.barrier()
            now = stage.value
            last = now + (tile.stages - 1)
            behind = k.select(last >= tile.stages, last - tile.stages, last)
            self._fetch(depth + tile.depth * (tile.stages - 1), behind)
            self._round(now, sums)
            stage.value = k.select(now.equals(tile.stages - 1), now.like(0), now + 1)
        wait(k, 0)
        for i, line in enumerate(sums):
            for j, one in enumerate(line):
                self._give(i, j, [part.value for part in one])

    def _round(self, stage: Value, sums: Sequence[Sequence[Sequence[Variable]]]) -> None:
        """One tile of the depth."""
        tile = self.tile
        high, wide = tile.rows // tile.down, tile.columns // tile.across
        for piece in range(0, tile.depth // self.each, STEP // PIECE):
            a = [self._left(stage, piece, self.down * high, row) for row in range(0, high, 16)]
            b = list[list[Any]]()
            for column in range(0, wide, 16):
                found = self._right(stage, piece, self.across * wide + column)
                b += [found[:2], found[2:]]
            for line, x in zip(sums, a, strict=True):
                for one, y in zip(line, b, strict=True):
                    accumulate(self.k, self.factors, one, x, y)

    def _left(self, stage: Value, piece: int, first: Value, row: int) -> list[Any]:
        """The fragments of 16 rows, from a ``piece`` of them on. ``first``: of this warp; ``row``: from there on."""
        k, left, lane = self.k, self.left, self.k.lane()
        place = left.place(first + (lane & 15) + row, (lane >> 4) + piece)
        return taken(k, self.factors, fragments(k, left.shared, stage * left.bytes + place))

    def _right(self, stage: Value, piece: int, column: Value) -> list[Any]:
        """The fragments of 16 columns, two of 8 each."""
        k, right, lane = self.k, self.right, self.k.lane()
        base = stage * right.bytes
        if right.along:  # rows are columns of the result, and pieces go along the depth
            row = column + (lane & 7) + ((lane >> 4) << 3)
            found = fragments(k, right.shared, base + right.place(row, ((lane >> 3) & 1) + piece))
        elif self.each < _APART:
            found = [self._word(base, piece * self.each, column, number) for number in range(4)]
        else:
            row = (lane & 15) + piece * self.each
            found = fragments(k, right.shared, base + right.place(row, (column >> 3) + (lane >> 4)), turned=True)
        return taken(k, self.factors, found)

    def _word(self, base: Value, depth: int, column: Value, number: int) -> Any:
        """The same one by one, of elements of 32 bits: a row of the fragment for each lane of four."""
        k, right, lane = self.k, self.right, self.k.lane()
        row, at = (lane & 3) + (depth + number % 2 * 4), column + (lane >> 2) + number // 2 * 8
        place = right.place(row, at // self.each) + at % self.each * I32.bytes
        return right.shared.at(base + place).of(I32)[k.index(0)].ir

    # ---- results

    def _give(self, i: int, j: int, sums: Sequence[Value]) -> None:
        k, tile, block, lane = self.k, self.tile, self.block, self.k.lane()
        high, wide = tile.rows // tile.down, tile.columns // tile.across
        column = block.column + self.across * wide + ((lane & 3) << 1) + 8 * j
        for half in range(2):
            row = block.row + self.down * high + (lane >> 2) + (16 * i + 8 * half)
            pair = sums[2 * half : 2 * half + 2]
            if self.plan.pairs:
                with k.when((row < block.rows) & (column < block.columns)):
                    given = [self._computed(row, column + number, total) for number, total in enumerate(pair)]
                    k.write(k.memory("result"), block.target((block.pair, row, column)), k.vector_of(given))
                continue
            for number, total in enumerate(pair):
                with k.when((row < block.rows) & (column + number < block.columns)):
                    given = self._computed(row, column + number, total)
                    k.memory("result")[block.target((block.pair, row, column + number))] = given

    def _computed(self, row: Value, column: Value, total: Value) -> Value:
        """What becomes of a sum."""
        expression = self.plan.expression
        return expression.compute(inputs_at(self.k, expression, total, (self.block.pair, row, column)))
