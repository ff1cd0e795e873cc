"""Products of few rows and a matrix in blocks: what they take is reading the codes, once."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import F32, ElementType
from tract_llvm.language.values import Value, Variable

from tract_core.frozen import frozen
from tract_cuda.kernels.blocks import BlockForm, BlockReader
from tract_cuda.kernels.product import AXES, parameters_in_blocks
from tract_cuda.kernels.sums import give, multiply_add
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class VectorBlocksPlan:
    """A product of [pairs, rows, depth] and [pairs, depth, columns], of which the latter lies in blocks.

    ``rows``: how many there are; ``left``: the type of the first factor. A warp has ``across`` neighbouring columns,
    and its lanes go along the depth, ``words`` words of codes at a time; ``at_once``: how many of them one access
    reads, at multiples of which they lie. ``wide``: the same of elements of the first factor. ``ragged``: whether the
    last block may have codes beyond the depth. ``warps``: of a block of threads. ``expression``: what is computed of
    each sum, which is one of f32, rounded to the type of its first input, and of the operands.
    """

    rows: int
    left: ElementType
    form: BlockForm
    across: int
    words: int
    at_once: int
    wide: int
    ragged: bool
    warps: int
    expression: Expression

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "vector_blocks"

    @property
    def threads(self) -> int:
        """Of a block of threads."""
        return self.warps * WARP

    @property
    def columns(self) -> int:
        """How many a block of threads has."""
        return self.warps * self.across

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The sizes of pairs, rows, columns and depth; each tensor, and its strides, of blocks along the depth."""
        return parameters_in_blocks(self.left, self.form, self.expression)

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of left[p, i, d] * right[p, d, j] over d, operands[p, i, j], ...)"""
        _Columns(self, k).write()


class _Columns:
    """The columns of a warp while they are written."""

    def __init__(self, plan: VectorBlocksPlan, k: Kernel) -> None:
        self.plan, self.k, self.form = plan, k, plan.form
        self.reader = BlockReader(plan.form, k, "right")
        pairs, _, self.count = k.sizes("size", AXES)
        tiles = (self.count + (plan.columns - 1)) // plan.columns
        self.pair, tile = k.spot(k.block(), [pairs, tiles])
        first = tile * plan.columns + k.warp() * plan.across
        self.columns = [first + number for number in range(plan.across)]

    def write(self) -> None:
        """The whole kernel."""
        k, plan = self.k, self.plan
        sums = [[k.variable(k.constant(0, F32)) for _ in range(plan.rows)] for _ in self.columns]
        with k.loop("words", self._words(), k.lane() * plan.words, WARP * plan.words) as word:
            self._add(word, sums)
        totals = [[one.value for one in line] for line in sums]
        for distance in (16, 8, 4, 2, 1):
            totals = [[one + k.shuffled_xor(one, distance) for one in line] for line in totals]
        with k.when(k.lane().equals(0)):
            for column, line in zip(self.columns, totals, strict=True):
                with k.when(column < self.count):
                    for row, total in enumerate(line):
                        give(k, plan.expression, total, (self.pair, k.index(row), column))

    def _words(self) -> Value:
        """How many words a column has, those that fill up the last block among them."""
        return (self.k.size("depth") + (self.form.length - 1)) // self.form.length * self.form.words

    def _add(self, word: Value, sums: Sequence[Sequence[Variable]]) -> None:
        """Add the products with some words of each column, all of one block."""
        k, plan, form = self.k, self.plan, self.form
        block, inner = k.divided(word, k.index(form.words))
        packed: list[list[Value]] = []
        about: list[tuple[Value, Value]] = []
        for column in self.columns:
            codes, *others = self._places(column, block)
            packed.append(self.reader.words(codes + inner * form.units, plan.words, plan.at_once))
            about.append(self.reader.of_block(others))
        for number in range(plan.words):
            first = block * form.length + (inner + number) * form.run
            factors = [self._left(row, first) for row in range(plan.rows)]
            for words, (scale, centre), line in zip(packed, about, sums, strict=True):
                numbers = self._inside(first, form.numbers(words[number], scale, centre))
                for xs, total in zip(factors, line, strict=True):
                    for x, y in zip(xs, numbers, strict=True):
                        total.value = multiply_add(x, y, total.value)

    def _places(self, column: Value, block: Value) -> list[Value]:
        """Where a block of a column begins: its codes, and its other parts."""
        k, column = self.k, self.k.select(column < self.count, column, column.like(0))
        found: list[Value] = []
        for name in ("right", *(name for name, _ in self.form.parts())):
            pair, along, across = k.sizes(f"{name}.", AXES)
            found.append(self.pair * pair + block * along + column * across)
        return found

    def _left(self, row: int, first: Value) -> list[Value]:
        """The elements of a row by which the numbers of a word are multiplied, in the order of the latter."""
        k, plan, memory = self.k, self.plan, self.k.memory("left")
        pair, down, along = k.sizes("left.", AXES)
        begin, found = self.pair * pair + down * row, dict[int, Value]()
        for there in sorted(self.form.places)[:: plan.wide]:
            if plan.wide > 1:
                vector = k.convert(k.read(memory, begin + first + there, plan.wide), F32)
                found |= {there + lane: vector.lane(lane) for lane in range(plan.wide)}
                continue
            spot = first + there
            safe = k.select(spot < k.size("depth"), spot, spot.like(0)) if plan.ragged else spot
            found[there] = k.convert(memory[begin + safe * along], F32)
        return self._inside(first, [found[there] for there in self.form.places])

    def _inside(self, first: Value, numbers: list[Value]) -> list[Value]:
        """The numbers of a word, 0 for those beyond the depth."""
        if not self.plan.ragged:
            return numbers
        k, depth = self.k, self.k.size("depth")
        return [
            k.select(first + there < depth, one, one.like(0))
            for there, one in zip(self.form.places, numbers, strict=True)
        ]
