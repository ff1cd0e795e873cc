"""Sums of a tile in squares of two rows and two columns, where an instruction has these in a register (`Dot.square`).

It adds two groups to each sum, those of one step after those of the step before: so sums are the same to the bit as
where each group is added alone. Factors lie in memory as for that; what an instruction takes together is put together
here, in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.isa import Dot
from tract_llvm.language.function import Function
from tract_llvm.language.values import Value

TOGETHER: Final = 2
"""How many rows, columns, and steps."""

LANES: Final = 4
"""Of a square."""


def pairs_of(height: int) -> int:
    """Into how many pairs so many rows go, the last of which may lack one."""
    return -(-height // TOGETHER)


def interleaved(k: Function, first: Value, second: Value) -> list[Value]:
    """Groups of rows, or of columns, of two steps, as `Function.squares` takes them, two of them in each four lanes."""
    lanes = first.lanes
    places = [step * lanes + one for one in range(lanes) for step in range(TOGETHER)]
    return [k.shuffled(first, second, half) for half in (places[:lanes], places[lanes:])]


class SquareSums:
    """The sums of one tile. ``height``: its rows; ``start``: what every row starts at, in whole vectors of columns."""

    def __init__(self, k: Function, dot: Dot, height: int, start: Sequence[Value]) -> None:
        self._k, self._dot, self._height, self._lanes = k, dot, height, start[0].lanes
        places = self._begins()
        first = [k.shuffled(one, one, half) for one in start for half in places]
        self._sums = [[k.variable(one) for one in first] for _ in range(pairs_of(height))]

    def _begins(self) -> list[list[int]]:
        """Of two columns at a time, where those are of a vector that a square begins with."""
        each = (0, 0, 1, 1) if self._dot.turned else (0, 1, 0, 1)
        places = [column + one for column in range(0, self._lanes, TOGETHER) for one in each]
        return [places[: self._lanes], places[self._lanes :]]

    def add(self, rows: Sequence[Value], columns: Sequence[Value]) -> None:
        """Add the products of two steps. ``columns``: vectors of two of them in each four lanes, as `interleaved`.

        ``rows``: two of them, in four lanes; behind the last one anything.
        """
        for pair, line in zip(rows, self._sums, strict=True):
            every = pair if self._lanes == LANES else self._repeated(pair)
            for total, column in zip(line, columns, strict=True):
                total.value = self._k.squares(self._dot, every, column, total.value)

    def _repeated(self, pair: Value) -> Value:
        return self._k.shuffled(pair, pair, list(range(LANES)) * (self._lanes // LANES))

    def totals(self) -> list[list[Value]]:
        """The sums, by rows and vectors."""
        of_rows = ((0, 2), (1, 3)) if self._dot.turned else ((0, 1), (2, 3))
        places = [[first + one for first in range(0, 2 * self._lanes, LANES) for one in row] for row in of_rows]
        found = [
            [self._k.shuffled(a.value, b.value, row) for a, b in zip(line[::2], line[1::2], strict=True)]
            for line in self._sums
            for row in places
        ]
        return found[: self._height]
