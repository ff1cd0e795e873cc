"""Products whose matrix each row chooses: a warp for each number of the result, which goes along both factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tract_llvm.elements.expressions import rounded
from tract_llvm.language.types import F32, I32, ElementType
from tract_llvm.language.values import Value, Variable

from tract_core.frozen import frozen
from tract_cuda.kernels.blocks import BlockForm, BlockReader
from tract_cuda.kernels.gather import named, named_place, refuse
from tract_cuda.kernels.positions import place, strided
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter, sizes

COLUMNS: Final = 8
"""How many numbers of a row a block has: a warp for each."""


@frozen
class IndexedMatMulPlan:
    """A block for some columns of one row, of rows in so many loops.

    ``element``: of rows and of the result; ``index``: the type of what they choose; ``rank``: how many loops there are.
    ``wide``: how many neighbours are read at once. ``form``: how matrices lie in blocks along what is summed; ``None``
    where they do not.
    """

    element: ElementType
    index: ElementType
    rank: int
    wide: int
    form: BlockForm | None

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "indexed_matmul"

    @property
    def threads(self) -> int:
        """Of a block."""
        return COLUMNS * WARP

    @property
    def sums(self) -> ElementType:
        """The type of the sums."""
        return self.element.computed

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, with the rows and what they choose in them; the matrices; the result, row by row.

        Of what is read of matrices, how far these are apart, their columns, and what is summed, or blocks of it.
        """
        rows = (*strided("rows", self.element, self.rank), Parameter("rows.step"))
        numbers = (*strided("numbers", self.index, self.rank), *named(1))
        matrices = (one for name, element in self.read() for one in (Parameter(name, element), *sizes(f"{name}.", 3)))
        ends = (Parameter("result", self.element), Parameter("status", I32))
        return (*sizes("size", self.rank), Parameter("columns"), Parameter("depth"), *rows, *numbers, *matrices, *ends)

    def read(self) -> Iterator[tuple[str, ElementType]]:
        """What is read of matrices."""
        if self.form is None:
            yield "weights", self.element
        else:
            yield "codes", self.form.unit
            yield from self.form.parts()

    def emit(self, k: Kernel) -> None:
        """result[i, ..., c] = sum of rows[i, ..., d] * weights[the matrix that numbers[i, ...] name, c, d]"""
        columns = k.size("columns")
        tiles = (columns + (COLUMNS - 1)) // COLUMNS
        *at, tile = k.spot(k.block(), [*k.sizes("size", self.rank), tiles])
        matrix, inside = named_place(k, place(k, "numbers", at), 1)
        with k.when(~inside & k.thread().equals(0)):
            refuse(k)
        column = tile * COLUMNS + k.warp()
        with k.when(inside & (column < columns)):
            begins = [self._begin(k, name, matrix, column) for name, _ in self.read()]
            total = self._total(k, place(k, "rows", at), begins)
            for distance in (16, 8, 4, 2, 1):
                total = total + k.shuffled_xor(total, distance)
            with k.when(k.lane().equals(0)):
                k.memory("result")[k.block() // tiles * columns + column] = rounded(total, self.element)

    def _begin(self, k: Kernel, name: str, matrix: Value, column: Value) -> Value:
        return matrix * k.size(f"{name}.0") + column * k.size(f"{name}.1")

    def _total(self, k: Kernel, row: Value, begins: Sequence[Value]) -> Value:
        """What this thread sums of a row, by a column of its matrix that ``begins`` there."""
        sums = [k.variable(k.constant(0, self.sums)) for _ in range(self.wide)]
        if self.form is None:
            self._add(k, row, begins[0], sums)
        else:
            self._add_blocks(k, self.form, row, begins, sums[0])
        total = sums[0].value
        for one in sums[1:]:
            total = total + one.value
        return total

    def _add(self, k: Kernel, row: Value, begin: Value, sums: Sequence[Variable]) -> None:
        with k.loop("depth", k.size("depth"), k.lane() * self.wide, WARP * self.wide) as d:
            places = ("rows", row + d * k.size("rows.step")), ("weights", begin + d * k.size("weights.2"))
            read = (k.read(k.memory(name), at, self.wide if self.wide > 1 else 0) for name, at in places)
            x, y = (k.convert(one, self.sums) for one in read)
            for lane, total in enumerate(sums):
                left, right = (one.lane(lane) if one.lanes else one for one in (x, y))
                total.value = left.times_plus(right, total.value)

    def _add_blocks(self, k: Kernel, form: BlockForm, row: Value, begins: Sequence[Value], total: Variable) -> None:
        """A word of codes at a time. Codes behind the end of a column count as 0."""
        rows, step, depth = k.memory("rows"), k.size("rows.step"), k.size("depth")
        words = (depth + (form.length - 1)) // form.length * form.words
        with k.loop("words", words, k.lane(), WARP) as word:
            block, inner = k.divided(word, k.index(form.words))
            at = [one + block * k.size(f"{name}.2") for one, (name, _) in zip(begins, self.read(), strict=True)]
            reader = BlockReader(form, k, "codes")
            (bits,) = reader.words(at[0] + inner * form.units, 1)
            first = block * form.length + inner * form.run
            for there, number in zip(form.places, form.numbers(bits, *reader.of_block(at[1:])), strict=True):
                d = first + there
                factor = k.convert(rows[row + k.select(d < depth, d, d.like(0)) * step], F32)
                factor = k.select(d < depth, factor, factor.like(0))
                total.value = factor.times_plus(number, total.value)
