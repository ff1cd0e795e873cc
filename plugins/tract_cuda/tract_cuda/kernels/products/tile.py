"""Products of matrices, a tile for each block: factors come through shared memory, sums are in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.kernels.product import AXES, Block, parameters_of_tiles
from tract_cuda.kernels.products.tile_blocks import TileWords
from tract_cuda.kernels.sums import inputs_at, multiply_add
from tract_cuda.kernels.windows import OpenWindows, Windows
from tract_cuda.language.arch import ACCESS_BYTES
from tract_cuda.language.kernel import Kernel, Parameter

_MANY: Final = 16
"""Elements that a thread reads ahead, for which compilers want to be told how many registers there are."""


@frozen
class Tile:
    """``rows``, ``columns``: of the result for each block; ``depth``: summed at once.

    ``down``, ``across``: how many rows and columns each thread has.
    """

    rows: int
    columns: int
    depth: int
    down: int
    across: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows // self.down * (self.columns // self.across)


@frozen
class TilePlan:
    """A product of [pairs, rows, depth] and [pairs, depth, columns].

    ``left``, ``right``: the types of the factors; ``sums``: in which products are summed. ``inner_left``,
    ``inner_right``: whether the summed axis is that along which the factor lies in memory; ``wide_left``,
    ``wide_right``: how many of its elements are read at once, which then lie side by side in multiples of them.
    ``parts``: whether blocks along z sum parts of the depth, each to its own result, and not all of it. ``windows``:
    how the left factor is read where it is the windows of a convolution, which lie nowhere side by side.
    ``blocks``: how the right factor lies where that is in blocks, whose codes are the elements of ``right`` then;
    ``ragged``: whether the last of them may have codes beyond the depth. ``expression``: what is computed of each sum,
    rounded to the type of its first input, and of the operands.
    """

    tile: Tile
    left: ElementType
    right: ElementType
    sums: ElementType
    inner_left: bool
    inner_right: bool
    wide_left: int
    wide_right: int
    parts: bool
    expression: Expression
    windows: Windows | None = None
    blocks: BlockForm | None = None
    ragged: bool = False

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "tile"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.tile.threads

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The sizes of pairs, rows, columns, depth and of a part of that; each tensor, and its strides."""
        return parameters_of_tiles(self.left, self.right, self.expression, self.windows, self.blocks)

    @property
    def scattered(self) -> bool:
        """Whether what a thread reads ahead, and its addresses, take many registers.

        `ptxas` would rather lay some of them down in memory than have one block less at once. Others are left to it.
        """
        tile = self.tile
        ahead = (tile.rows + tile.columns) * tile.depth // tile.threads
        many = ahead >= _MANY if self.inner_right else ahead > _MANY
        partial = self.windows is not None and not self.windows.whole
        return many or partial or 1 in (self.wide_left, self.wide_right)

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of left[p, i, d] * right[p, d, j] over d, operands[p, i, j], ...)"""
        k.least_blocks = 1 if self.scattered else 0
        _Tile(self, k).write()


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One factor while it goes through shared memory, as [depth, length].

    ``pitch``: elements from one position of the depth to the next, in ``shared``. ``wide``: elements of one load;
    ``along``: whether neighbouring threads read along the depth. ``begin``: of the tile in ``memory``; ``step``,
    ``inner``: along its length, and along the depth; ``left``: how much of the length there is. ``each``: how many
    elements of the length a thread has, of which this thread is number ``spot``.
    """

    memory: Buffer
    shared: Buffer
    length: int
    pitch: int
    wide: int
    along: bool
    begin: Value
    step: Value
    inner: Value
    left: Value
    each: int
    spot: Value

    @property
    def group(self) -> int:
        """How many elements of a thread lie side by side: what one access to shared memory reads."""
        return min(self.each, ACCESS_BYTES // self.shared.element.bytes)

    def place(self, number: int) -> Value:
        """Where along the length an element of this thread is."""
        group, threads = self.group, self.length // self.each
        return self.spot * group + (number // group * threads * group + number % group)


class _Tile:
    """A tile while it is written."""

    def __init__(self, plan: TilePlan, k: Kernel) -> None:
        self.plan, self.k, self.tile = plan, k, plan.tile
        self.thread = k.thread()
        self.block = Block.of(k, self.tile.rows, self.tile.columns, parts=plan.parts)
        self.left, self.right = self._side("left"), self._side("right")
        self.windows: OpenWindows | None = None
        if plan.windows is not None:
            spots = [self.block.row + spot for spot, _, _ in self._loads(self.left)]
            self.windows = plan.windows.opened(k, self.block.pair, spots)
        self.words: TileWords | None = None
        if plan.blocks is not None:
            self.words = TileWords(k, plan.blocks, self.block, self.tile.columns, self.tile.depth)

    def write(self) -> None:
        """The whole kernel."""
        k, tile, plan = self.k, self.tile, self.plan
        begin, end = self.block.depth()
        sums = [[k.variable(k.constant(0, plan.sums)) for _ in range(tile.across)] for _ in range(tile.down)]
        sides = (self.left, self.right)
        ahead = [[k.variable(one) for one in self._read(side, begin, end)] for side in sides]
        with k.loop("depth", end, begin, tile.depth) as depth:
            k.barrier()
            for side, values in zip(sides, ahead, strict=True):
                self._keep(side, [one.value for one in values])
            k.barrier()
            for side, values in zip(sides, ahead, strict=True):  # what comes next is on its way meanwhile
                for variable, value in zip(values, self._read(side, depth + tile.depth, end), strict=True):
                    variable.value = value
            for inner in range(tile.depth):
                a, b = self._held(self.left, inner), self._held(self.right, inner)
                for i, x in enumerate(a):
                    for j, y in enumerate(b):
                        total = sums[i][j].value
                        sums[i][j].value = multiply_add(x, y, total)
        self._give([[one.value for one in line] for line in sums])

    def _side(self, name: str) -> _Side:
        k, plan, tile, block, left = self.k, self.plan, self.tile, self.block, name == "left"
        pair, outer, inner = (k.sizes(f"{name}.", AXES)[n] for n in ((0, 1, 2) if left else (0, 2, 1)))
        length, each, at = (tile.rows, tile.down, block.row) if left else (tile.columns, tile.across, block.column)
        along, wide = (plan.inner_left, plan.wide_left) if left else (plan.inner_right, plan.wide_right)
        pitch = length + (ACCESS_BYTES // plan.sums.bytes if along else 0)  # what is turned lies in several banks
        across = tile.columns // tile.across
        return _Side(
            k.memory(name),
            k.shared(plan.sums, pitch * tile.depth),
            length,
            pitch,
            wide,
            along,
            block.pair * pair + at * outer,
            outer,
            inner,
            (block.rows if left else block.columns) - at,
            each,
            self.thread // across if left else self.thread % across,
        )

    # ---- factors

    def _loads(self, side: _Side) -> list[tuple[Value, Value, Value | None]]:
        """For each load of a thread: where it is along the length and the depth, and whether it has one at all."""
        whole = side.length * self.tile.depth // side.wide
        found: list[tuple[Value, Value, Value | None]] = []
        for first in range(0, whole, self.plan.threads):
            here = self.thread + first
            each = (self.tile.depth if side.along else side.length) // side.wide
            outer, inner = here // each, here % each * side.wide
            there = here < whole if first + self.plan.threads > whole else None
            found.append((outer, inner, there) if side.along else (inner, outer, there))
        return found

    def _read(self, side: _Side, depth: Value, end: Value) -> list[Value]:
        """What a thread reads of a tile: zeros beyond the ends."""
        if self.words is not None and side is self.right:
            return self.words.read(depth, end, ragged=self.plan.ragged)
        k, found = self.k, list[Value]()
        vector, windows = side.wide if side.wide > 1 else 0, self.windows if side is self.left else None
        for number, (spot, inner, there) in enumerate(self._loads(side)):
            inside = (spot < side.left) & (depth + inner < end)
            inside = inside if there is None else inside & there
            if windows is None:
                place = side.begin + spot * side.step + (depth + inner) * side.inner
            else:
                place, within = windows.at(number, depth, inner)
                inside = inside & within
            safe = k.select(inside, place, place.like(0))
            value = k.read(side.memory, safe, vector) if vector else side.memory[safe]
            value = k.convert(value, self.plan.sums)
            found.append(k.select(inside, value, value.like(0)))
        return found

    def _keep(self, side: _Side, values: Sequence[Value]) -> None:
        """Put what was read into shared memory."""
        if self.words is not None and side is self.right:
            self.words.put(values, self._keep_word, ragged=self.plan.ragged)
            return
        for (spot, inner, there), value in zip(self._loads(side), values, strict=True):
            if there is None:
                self._keep_one(side, spot, inner, value)
            else:
                with self.k.when(there):
                    self._keep_one(side, spot, inner, value)

    def _keep_one(self, side: _Side, spot: Value, inner: Value, value: Value) -> None:
        if not side.along or not value.lanes:
            self.k.write(side.shared, inner * side.pitch + spot, value)
            return
        for lane in range(side.wide):
            side.shared[(inner + lane) * side.pitch + spot] = value.lane(lane)

    def _keep_word(self, column: Value, first: Value, numbers: Mapping[int, Value]) -> None:
        for there, number in numbers.items():
            self.right.shared[(first + there) * self.right.pitch + column] = number

    def _held(self, side: _Side, inner: int) -> list[Value]:
        """The elements that a thread has of a factor, at one position of the depth."""
        found: list[Value] = []
        for first in range(0, side.each, side.group):
            place = side.place(first) + inner * side.pitch
            if side.group == 1:
                found.append(side.shared[place])
            else:
                vector = self.k.read(side.shared, place, side.group)
                found += [vector.lane(number) for number in range(side.group)]
        return found

    # ---- results

    def _give(self, sums: Sequence[Sequence[Value]]) -> None:
        k, block, expression = self.k, self.block, self.plan.expression
        for i, line in enumerate(sums):
            row = block.row + self.left.place(i)
            with k.when(row < block.rows):
                for j, total in enumerate(line):
                    column = block.column + self.right.place(j)
                    with k.when(column < block.columns):
                        at = (block.pair, row, column)
                        inputs, target = inputs_at(k, expression, total, at), block.target(at)
                        k.memory("result")[target] = expression.compute(inputs)
