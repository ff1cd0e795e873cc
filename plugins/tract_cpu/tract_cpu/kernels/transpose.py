"""Transpositions: blocks that fit the nearest cache, made of tiles that are turned around in registers.

A tile is as many positions long as a vector has lanes, and as many wide as 16 bytes hold. It is read in pieces of 16
bytes, which stand in each other's place after rounds of interleaving within 16 bytes, which are cheap on every
processor, and is written in whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size

BLOCK: Final = 64
"""How many positions a block has on both axes. One task turns one block around."""

PIECE_BITS: Final = 128
"""What is interleaved cheaply on every processor."""


@frozen
class TransposePlan:
    """``element``: an integer of the width of what is moved. ``lanes``: of a vector. ``outer``: loops around."""

    element: ElementType
    lanes: int
    outer: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "transpose"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        ends = [Memory("source", self.element), Size("source_row"), Memory("target", self.element), Size("target_row")]
        return Signature.of(Size("down"), Size("along"), *ends, Each.loop("outer", self.outer, 2))

    def emit(self, k: Kernel) -> None:
        """target[..., i, j] = source[..., j, i], where the last axis of both is the one without gaps."""
        taken = self.signature.taken(k)
        down, along = taken.size("down"), taken.size("along")
        source, target = (_Matrix(taken.memory(one), taken.size(f"{one}_row")) for one in ("source", "target"))
        outer = [(one.size("size"), *one.sizes("strides")) for one in taken.each("outer")]
        wide, high = ((size + (BLOCK - 1)) // BLOCK for size in (along, down))
        with k.loop("task", k.end, k.begin) as task:
            i, j = (task // wide % high) * BLOCK, (task % wide) * BLOCK
            number, read, written = task // wide // high, source.at(j, i), target.at(i, j)
            for size, source_step, target_step in reversed(outer):
                position = number % size
                number = number // size
                read, written = read.moved(position * source_step), written.moved(position * target_step)
            self._block(k, read, written, (k.smaller(down - i, BLOCK), k.smaller(along - j, BLOCK)))

    def _block(self, k: Kernel, source: _Matrix, target: _Matrix, sizes: tuple[Value, Value]) -> None:
        down, along = sizes
        width = PIECE_BITS // self.element.bits
        long, wide = along - along % self.lanes, down - down % width
        with k.loop("tile.j", long, step=self.lanes) as j, k.loop("tile.i", wide, step=width) as i:
            self._tile(k, source.at(j, i), target.at(i, j))
        for begin_i, end_i, begin_j in ((k.index(0), wide, long), (wide, down, k.index(0))):
            with k.loop("rest.i", end_i, begin_i) as i, k.loop("rest.j", along, begin_j) as j:
                target.at(i, j).memory[0] = source.at(j, i).memory[0]

    def _tile(self, k: Kernel, source: _Matrix, target: _Matrix) -> None:
        width = PIECE_BITS // self.element.bits
        rows = turned_rows(k, lambda row: source.at(k.index(row), 0).memory.vector(0, width), (self.lanes, width))
        for turned, row in enumerate(rows):
            target.at(k.index(turned), 0).memory.put(0, row)


@dataclass(frozen=True, slots=True, eq=False)
class _Matrix:
    """Rows in memory, and how far apart they are."""

    memory: Buffer
    row: Value

    def at(self, row: Value, column: Value | int) -> _Matrix:
        """The part from a row and a column on."""
        return self.moved(row * self.row + column)

    def moved(self, by: Value) -> _Matrix:
        """The one so many elements further on."""
        return _Matrix(self.memory.at(by), self.row)


def turned_rows(k: Function, piece: Callable[[int], Value], sizes: tuple[int, int]) -> list[Value]:
    """A tile with rows and columns exchanged. ``sizes``: how many rows there are, and numbers in ``piece(row)``."""
    count, width = sizes
    rows = [k.joined([piece(one + first) for first in range(0, count, width)]) for one in range(width)]
    return turned_squares(k, rows, width)


def turned_squares(k: Function, rows: list[Value], width: int) -> list[Value]:
    """Squares of ``width`` rows and columns, side by side, with rows and columns exchanged in each."""
    half, lanes = width // 2, rows[0].lanes
    low = [base + place // 2 + place % 2 * lanes for base in range(0, lanes, width) for place in range(width)]
    high = [place + half for place in low]
    size = width
    while size > 1:
        pairs = [(rows[place], rows[place + half]) for place in range(half)]
        rows = [k.shuffled(a, b, places) for a, b in pairs for places in (low, high)]
        size //= 2
    return rows
