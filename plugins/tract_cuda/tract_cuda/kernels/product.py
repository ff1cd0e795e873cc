"""What kernels of products of matrices have in common: their axes and parameters, and what a block of threads sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.kernels.positions import place, strided
from tract_cuda.kernels.sums import results
from tract_cuda.kernels.windows import Windows
from tract_cuda.language.kernel import Kernel, Parameter, sizes

AXES: Final = 3
"""Pairs, rows and columns; factors have the summed axis in the place of that which they lack."""


def parameters_of(
    left: ElementType, right: ElementType, expression: Expression, further: Sequence[Parameter] = ()
) -> tuple[Parameter, ...]:
    """The sizes of pairs, rows, columns and depth, ``further`` numbers, and each tensor with its strides."""
    factors = (*strided("left", left, AXES), *strided("right", right, AXES))
    return (*sizes("size", AXES), Parameter("depth"), *further, *factors, *results(expression, AXES))


def parameters_in_blocks(left: ElementType, form: BlockForm, expression: Expression) -> tuple[Parameter, ...]:
    """The same where the right factor lies in blocks: its strides along the depth are those of a block."""
    return parameters_of(left, form.unit, expression, _about_blocks(form))


def parameters_of_tiles(
    left: ElementType,
    right: ElementType,
    expression: Expression,
    windows: Windows | None,
    blocks: BlockForm | None = None,
) -> tuple[Parameter, ...]:
    """The same for tiles: with the size of a part of the depth, how far apart their results are, and the windows."""
    along = () if windows is None else windows.parameters
    about = () if blocks is None else _about_blocks(blocks)
    return parameters_of(left, right, expression, (Parameter("part"), Parameter("apart"), *along, *about))


def _about_blocks(form: BlockForm) -> tuple[Parameter, ...]:
    """What blocks have beside their codes, each with its strides."""
    return tuple(one for name, element in form.parts() for one in strided(name, element, AXES))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """What a block of threads sums: a tile of the results of a ``pair``, which begins at a ``row`` and a ``column``.

    ``rows``, ``columns``: of the whole result. ``part``: which part of the depth; ``None`` for all of it.
    """

    k: Kernel
    pair: Value
    row: Value
    column: Value
    rows: Value
    columns: Value
    part: Value | None

    @staticmethod
    def of(k: Kernel, rows: int, columns: int, *, parts: bool) -> Block:
        """Of tiles of so many rows and columns. ``parts``: whether blocks along z sum parts of the depth."""
        pairs, down, across = k.sizes("size", AXES)
        tiles = [(size + (each - 1)) // each for size, each in ((down, rows), (across, columns))]
        pair, row, column = k.spot(k.block("x"), [pairs, *tiles])
        return Block(k, pair, row * rows, column * columns, down, across, k.block("z") if parts else None)

    def depth(self) -> tuple[Value, Value]:
        """From where to where the summed axis is summed here."""
        k, depth = self.k, self.k.size("depth")
        if self.part is None:
            return k.index(0), depth
        begin = self.part * k.size("part")
        return begin, k.smaller(begin + k.size("part"), depth)

    def target(self, at: Sequence[Value]) -> Value:
        """Where what becomes of a sum goes: each part of the depth has a result of its own."""
        there = place(self.k, "result", at)
        return there if self.part is None else there + self.part * self.k.size("apart")
