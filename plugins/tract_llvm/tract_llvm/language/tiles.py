"""Tiles: registers of 16 rows of 16 numbers of 32 bits. One instruction multiplies two, and adds to a third.

A number of a factor is a group of neighbours along the summed axis, as in `Function.dots`: the rows of the left factor
are rows of the product, its columns steps along that axis; of the right factor rows are steps, and columns columns.

Where the instruction set is written out, tiles are memory, and vectors are multiplied row by row. The layout of the
configuration and the instructions are those of Intel's "64 and IA-32 Architectures Software Developer's Manual", volume
1, "Programming with Intel AMX", and volume 2, "LDTILECFG".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tract_llvm.isa import Dot
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import I32, U8, element_named
from tract_llvm.language.values import Value
from tract_llvm.llvm import ir

ROWS: Final = 16
STEPS: Final = 16
"""Rows of a tile, and numbers of 32 bits in each."""

COUNT: Final = 8
"""How many tiles there are."""


class Tiles(ABC):
    """The tiles of a function, by their numbers, while it is written. Numbers in memory are ``row`` of them apart."""

    @abstractmethod
    def configured(self) -> Any:
        """A context manager: inside, there are tiles."""

    @abstractmethod
    def clear(self, tile: int) -> None:
        """Have zeros in a tile."""

    @abstractmethod
    def load(self, tile: int, source: Buffer, row: Value | int) -> None:
        """Read a tile, from a place on."""

    @abstractmethod
    def store(self, tile: int, target: Buffer, row: Value | int) -> None:
        """Write a tile, from a place on."""

    @abstractmethod
    def add_products(self, dot: Dot, sums: int, left: int, right: int) -> None:
        """sums[row, column] += sum over steps of the products of left[row, step] and right[step, column]."""


def tiles_of(function: Function) -> Tiles:
    """The tiles of a function, as its instruction set has them."""
    return _WrittenOut(function) if function.isa.written_out else _Registers(function)


class _Registers(Tiles):
    """Those of the processor. All of them are whole, so that one configuration does for all kernels."""

    def __init__(self, function: Function) -> None:
        self._function = function

    @contextmanager
    def configured(self) -> Generator[None]:
        self._call("ldtilecfg", self._function.table(CONFIGURATION, U8).ir)
        yield
        self._call("tilerelease")

    def clear(self, tile: int) -> None:
        self._call("tilezero", _number(tile))

    def load(self, tile: int, source: Buffer, row: Value | int) -> None:
        self._call("tileloadd64", _number(tile), source.address(0), self._bytes(row))

    def store(self, tile: int, target: Buffer, row: Value | int) -> None:
        self._call("tilestored64", _number(tile), target.address(0), self._bytes(row))

    def add_products(self, dot: Dot, sums: int, left: int, right: int) -> None:
        assert not dot.turned, "there is an instruction for factors of all signs"
        self._call(dot.name.removeprefix("x86."), *map(_number, (sums, left, right)))

    def _bytes(self, row: Value | int) -> Any:
        return (self._function.index(row) * I32.bytes).ir

    def _call(self, name: str, *arguments: Any) -> None:
        function = self._function
        callee = function.declared(f"llvm.x86.{name}", ir.VoidType(), [one.type for one in arguments])
        function.builder.call(callee, arguments)


CONFIGURATION: Final[Sequence[int]] = (
    *(1, 0),  # the palette, and the row to go on with
    *(0,) * 14,
    *(64, 0) * COUNT,  # bytes of a row, of 16 bits each
    *(0,) * (2 * (16 - COUNT)),
    *(ROWS,) * COUNT,
    *(0,) * (16 - COUNT),
)
"""64 bytes, by which all tiles are whole."""


def _number(tile: int) -> Any:
    return ir.Constant(ir.IntType(8), tile)


class _WrittenOut(Tiles):
    """The same in memory."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._held = [function.own(I32, ROWS * STEPS) for _ in range(COUNT)]

    @contextmanager
    def configured(self) -> Generator[None]:
        yield

    def clear(self, tile: int) -> None:
        function = self._function
        with function.loop("row", ROWS) as row:
            self._held[tile].put(row * STEPS, function.constant(0, I32, STEPS))

    def load(self, tile: int, source: Buffer, row: Value | int) -> None:
        self._copy(source.of(I32), row, self._held[tile], STEPS)

    def store(self, tile: int, target: Buffer, row: Value | int) -> None:
        self._copy(self._held[tile], STEPS, target.of(I32), row)

    def _copy(self, source: Buffer, row: Value | int, target: Buffer, target_row: Value | int) -> None:
        function = self._function
        apart, target_apart = function.index(row), function.index(target_row)
        with function.loop("row", ROWS) as one:
            target.put(one * target_apart, source.vector(one * apart, STEPS))

    def add_products(self, dot: Dot, sums: int, left: int, right: int) -> None:
        from tract_llvm.language.written_out import products_of_tiles

        function, kind = self._function, element_named(dot.sums)
        totals, factors, lines = self._held[sums].of(kind), self._held[left], self._held[right]
        with function.loop("row", ROWS) as row:
            products_of_tiles(
                function,
                dot,
                function.index(STEPS),
                lambda step: (factors[row * STEPS + step].splat(STEPS), lines.vector(step * STEPS, STEPS)),
                totals.at(row * STEPS),
            )
