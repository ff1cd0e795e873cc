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


def pairs_of(height: int) -> int:
    """Into how many pairs so many rows go, the last of which may lack one."""
    return -(-height // TOGETHER)


def interleaved(k: Function, first: Value, second: Value) -> list[Value]:
    """Groups of rows, or of columns, of two steps, as `Function.squares` takes them: of two, then of two more, ..."""
    lanes = first.lanes
    places = [step * lanes + one for one in range(lanes) for step in range(TOGETHER)]
    return [k.shuffled(first, second, places[one : one + 4]) for one in range(0, 2 * lanes, 4)]


class SquareSums:
    """The sums of one tile. ``height``: its rows; ``start``: what every row starts at, in vectors of four columns."""

    def __init__(self, k: Function, dot: Dot, height: int, start: Sequence[Value]) -> None:
        self._k, self._dot, self._height = k, dot, height
        places = ((0, 0, 1, 1), (2, 2, 3, 3)) if dot.turned else ((0, 1, 0, 1), (2, 3, 2, 3))
        first = [k.shuffled(one, one, two) for one in start for two in places]
        self._sums = [[k.variable(one) for one in first] for _ in range(pairs_of(height))]

    def add(self, rows: Sequence[Value], columns: Sequence[Value]) -> None:
        """Add the products of two steps. ``rows``, ``columns``: of each two of them, behind the last one anything."""
        for pair, line in zip(rows, self._sums, strict=True):
            for total, column in zip(line, columns, strict=True):
                total.value = self._k.squares(self._dot, pair, column, total.value)

    def totals(self) -> list[list[Value]]:
        """The sums, by rows and vectors."""
        places = ((0, 2, 4, 6), (1, 3, 5, 7)) if self._dot.turned else ((0, 1, 4, 5), (2, 3, 6, 7))
        found = [
            [self._k.shuffled(a.value, b.value, row) for a, b in zip(line[::2], line[1::2], strict=True)]
            for line in self._sums
            for row in places
        ]
        return found[: self._height]
