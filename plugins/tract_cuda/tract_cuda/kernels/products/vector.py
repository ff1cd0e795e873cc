"""Products of few rows and a matrix: what they take is reading the matrix, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.product import AXES, parameters_of
from tract_cuda.kernels.sums import give, multiply_add
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter

UNROLLED = 4
"""How many reads of the matrix are on their way at once."""


@frozen
class VectorPlan:
    """A product of [pairs, rows, depth] and [pairs, depth, columns].

    ``rows``: how many there are; ``left``, ``right``: the types of the factors; ``sums``: in which products are summed.
    ``inner``: whether the matrix lies with the depth side by side: then each warp has a column, and its lanes go along
    the depth, ``wide`` elements at a time; else the lanes of a warp have neighbouring columns, and the warps of a block
    go along the depth. ``warps``: of a block. ``expression``: what is computed of each sum, rounded to the type of its
    first input, and of the operands.
    """

    rows: int
    left: ElementType
    right: ElementType
    sums: ElementType
    inner: bool
    wide: int
    warps: int
    expression: Expression

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "vector"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.warps * WARP

    @property
    def columns(self) -> int:
        """How many a block has."""
        return self.warps if self.inner else WARP

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The sizes of pairs, rows, columns and depth; each tensor, and its strides."""
        return parameters_of(self.left, self.right, self.expression)

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of left[p, i, d] * right[p, d, j] over d, operands[p, i, j], ...)"""
        pairs, _, columns = k.sizes("size", AXES)
        blocks = (columns + (self.columns - 1)) // self.columns
        pair, block = k.spot(k.block(), [pairs, blocks])
        if self.inner:
            column = block * self.warps + k.warp()
            sums = self._summed(k, (pair, column), k.lane() * self.wide, WARP * self.wide)
            for distance in (16, 8, 4, 2, 1):
                sums = [one + k.shuffled_xor(one, distance) for one in sums]
            with k.when((k.lane().equals(0)) & (column < columns)):
                self._give(k, pair, column, lambda row: sums[row])
            return
        column = block * WARP + k.lane()
        sums = self._summed(k, (pair, column), k.warp(), self.warps)
        shared = k.shared(self.sums, self.warps * self.rows * WARP)
        for row, one in enumerate(sums):
            shared[(k.warp() * self.rows + row) * WARP + k.lane()] = one
        k.barrier()
        with k.when((k.warp().equals(0)) & (column < columns)):
            self._give(k, pair, column, lambda row: self._merged(k, shared, row))

    def _merged(self, k: Kernel, shared: Buffer, row: int) -> Value:
        """What all warps summed for a row, in the order of warps."""
        total = shared[k.lane() + row * WARP]
        for warp in range(1, self.warps):
            total = total + shared[k.lane() + (warp * self.rows + row) * WARP]
        return total

    def _summed(self, k: Kernel, at: tuple[Value, Value], first: Value, step: int) -> list[Value]:
        """The sums of a thread, one for each row, over every ``step``th position of the depth. ``at``: pair, column."""
        pair, column = at
        there = column < k.size("size2")
        left, right, depth = k.memory("left"), k.memory("right"), k.size("depth")
        a, b = k.sizes("left.", AXES), k.sizes("right.", AXES)
        begin = pair * b[0] + k.select(there, column, column.like(0)) * b[2]
        sums = [k.variable(k.constant(0, self.sums)) for _ in range(self.rows)]
        vector = self.wide if self.wide > 1 else 0
        with k.loop("depth", depth, first, step * UNROLLED) as base:
            spots = [base + number * step for number in range(UNROLLED)]
            inside = [spot < depth for spot in spots]
            safe = [k.select(one, spot, spot.like(0)) for one, spot in zip(inside, spots, strict=True)]
            factors = [
                k.convert(k.read(right, begin + (spot if vector else spot * b[1]), vector), self.sums) for spot in safe
            ]
            for one, spot, y in zip(inside, safe, factors, strict=True):
                for row, total in enumerate(sums):
                    place = pair * a[0] + a[1] * row + (spot if vector else spot * a[2])
                    x = k.convert(k.read(left, place, vector), self.sums)
                    product = self._times(x, y)
                    total.value = total.value + k.select(one, product, product.like(0))
        return [one.value for one in sums]

    def _times(self, x: Value, y: Value) -> Value:
        """The product, of vectors the sum of those of their lanes."""
        if not x.lanes:
            return x * y
        total = x.lane(0) * y.lane(0)
        for lane in range(1, x.lanes):
            total = multiply_add(x.lane(lane), y.lane(lane), total)
        return total

    def _give(self, k: Kernel, pair: Value, column: Value, sum_of: Callable[[int], Value]) -> None:
        for row in range(self.rows):
            give(k, self.expression, sum_of(row), (pair, k.index(row), column))
