"""Softmax of scores that come piece by piece: the largest so far, and sums that are scaled where a larger one comes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_cuda.language.kernel import Kernel


class Online:
    """Some rows of scores, each shared by ``lanes`` threads beside each other.

    ``powers``: of a score and the largest one. Rows of which nothing but -inf came so far keep sums of 0.
    """

    def __init__(self, k: Kernel, rows: int, lanes: int, powers: Expression, sums: ElementType) -> None:
        self.k, self.lanes, self.powers = k, lanes, powers
        self._tops = [k.variable(k.constant(-inf, sums)) for _ in range(rows)]
        self._totals = [k.variable(k.constant(0, sums)) for _ in range(rows)]

    def taken(self, row: int, scores: Sequence[Value]) -> tuple[list[Value], Value]:
        """The powers of the scores that a thread has of a row, and by what is multiplied what it summed before."""
        top, total = self._tops[row], self._totals[row]
        largest = scores[0]
        for one in scores[1:]:
            largest = self._larger(largest, one)
        for distance in self._distances():
            largest = self._larger(largest, self.k.shuffled_xor(largest, distance))
        largest = self._larger(top.value, largest)
        base = self.k.select(largest.equals(-inf), largest.like(0), largest)
        powers = [self.powers.compute([one, base]) for one in scores]
        factor = self.powers.compute([top.value, base])
        here = powers[0]
        for one in powers[1:]:
            here = here + one
        total.value = total.value * factor + here
        top.value = largest
        return powers, factor

    def top(self, row: int) -> Value:
        """The largest score of a row so far."""
        return self._tops[row].value

    def total(self, row: int) -> Value:
        """The sum of all powers of a row."""
        found = self._totals[row].value
        for distance in self._distances():
            found = found + self.k.shuffled_xor(found, distance)
        return found

    def _distances(self) -> list[int]:
        return [1 << number for number in range(self.lanes.bit_length() - 1)]

    def _larger(self, one: Value, other: Value) -> Value:
        """What is no number does not count: its power is none either."""
        return self.k.intrinsic("maxnum", one, other)
