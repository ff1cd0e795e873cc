"""The passes of Fourier transforms over memory, in place.

A pass joins ``radix`` transforms of ``span`` numbers each, which lie one behind the other, into one: number ``j`` of
the ``i``-th is multiplied by exp(-2 pi i j / (radix span)), and all numbers ``j`` are transformed (Cooley and Tukey).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.values import Value

from tract_cpu.kernels.fourier.butterflies import Complex, transformed


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Complex numbers in memory, one after the other: at each place real parts, one per lane, and imaginary parts."""

    memory: Buffer
    lanes: int

    @property
    def width(self) -> int:
        """How many parts of a kind a place has."""
        return max(self.lanes, 1)

    def __getitem__(self, place: Value | int) -> Complex:
        real = place * (2 * self.width)
        return Complex(self.memory.vector(real, self.lanes), self.memory.vector(real + self.width, self.lanes))

    def __setitem__(self, place: Value | int, number: Complex) -> None:
        real = place * (2 * self.width)
        self.memory.put(real, number.real.splat(self.lanes))
        self.memory.put(real + self.width, number.imaginary.splat(self.lanes))

    def lane(self, place: Value, lane: Value) -> Complex:
        """The number of one lane."""
        real = place * (2 * self.width) + lane
        return Complex(self.memory[real], self.memory[real + self.width])

    def put_lane(self, place: Value, lane: Value, number: Complex) -> None:
        """Write the number of one lane."""
        real = place * (2 * self.width) + lane
        self.memory[real], self.memory[real + self.width] = number.real, number.imaginary

    def at(self, place: Value | int) -> Numbers:
        """Those from a place on."""
        return Numbers(self.memory.at(place * (2 * self.width)), self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """``rows``: for each of ``count`` passes its radix, its span, and where its factors are among ``factors``.

    ``radices``: those that are written out; ``summed``: whether there are others, whose terms are kept in ``terms``.
    """

    radices: Sequence[int]
    summed: bool
    count: Value
    rows: Buffer
    factors: Numbers
    terms: Numbers

    def go_over(self, k: Function, work: Numbers, size: Value) -> None:
        """Transform ``size`` numbers, each of which is in the place that the first pass wants."""
        with k.loop("pass", self.count) as number:
            radix, span, where = (self.rows[number * 3 + column] for column in range(3))
            self._chosen(k, _Pass(k, work, radix, span, size, self.factors.at(where)), self.radices)

    def _chosen(self, k: Function, one: _Pass, radices: Sequence[int]) -> None:
        """The pass of a radix, once it is known which one it is."""
        if not radices:
            if self.summed:
                one.summed(self.terms)
            return
        if len(radices) == 1 and not self.summed:
            one.written_out(radices[0])
            return
        with k.either(one.radix.equals(radices[0])) as (then, otherwise):
            with then:
                one.written_out(radices[0])
            with otherwise:
                self._chosen(k, one, radices[1:])


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """One pass while it is written."""

    k: Function
    work: Numbers
    radix: Value
    span: Value
    size: Value
    factors: Numbers

    def written_out(self, radix: int) -> None:
        """All numbers that are transformed together are in registers."""
        k, span = self.k, self.span
        with k.loop("block", self.size, step=span * radix) as begin, k.loop("number", span) as j:
            numbers, factors = self.work.at(begin + j), self.factors.at(j * (radix - 1))
            terms = [numbers[0]] + [numbers[span * i] * factors[i - 1] for i in range(1, radix)]
            for i, found in enumerate(transformed(terms)):
                numbers[span * i if i else 0] = found

    def summed(self, terms: Numbers) -> None:
        """As the definition says, for an odd radix.

        Terms at equal distances from both ends meet the same cosines, and opposite sines: their sums are in ``terms``
        first, then their differences, turned.
        """
        k, span, radix = self.k, self.span, self.radix
        half, roots = radix // 2, self.factors.at(span * (radix - 1))
        with k.loop("block", self.size, step=span * radix) as begin, k.loop("number", span) as j:
            numbers, factors = self.work.at(begin + j), self.factors.at(j * (radix - 1))
            first = numbers[0]
            with k.loop("term", half) as i:
                low = numbers[(i + 1) * span] * factors[i]
                high = numbers[(radix - 1 - i) * span] * factors[radix - 2 - i]
                terms[i], terms[half + i] = low + high, (low - high).back()
            with k.loop("result", half) as q:
                even, odd = self._sums(first, terms, roots, q + 1)
                numbers[(q + 1) * span], numbers[(radix - 1 - q) * span] = even + odd, even - odd
            numbers[0] = self._total(first, terms)

    def _sums(self, first: Complex, terms: Numbers, roots: Numbers, q: Value) -> tuple[Complex, Complex]:
        """``first`` and the sums times cosines; the differences times sines."""
        k, half = self.k, self.radix // 2
        even, odd = _Sum(k, first), _Sum(k, Complex(first.real.like(0), first.real.like(0)))
        place = k.variable(q)
        with k.loop("term", half) as i:
            root = roots[place.value]
            even.add(root.real, terms[i])
            odd.add(-root.imaginary, terms[half + i])
            following = place.value + q
            place.value = k.select(following < self.radix, following, following - self.radix)
        return even.value, odd.value

    def _total(self, first: Complex, terms: Numbers) -> Complex:
        total = _Sum(self.k, first)
        with self.k.loop("term", self.radix // 2) as i:
            total.add(1.0, terms[i])
        return total.value


class _Sum:
    """A complex number that grows."""

    def __init__(self, k: Function, start: Complex) -> None:
        self._parts = k.variable(start.real), k.variable(start.imaginary)

    def add(self, factor: Value | float, term: Complex) -> None:
        """Add the product of a real number and a complex one."""
        self.value = term.times_plus(factor, self.value)

    @property
    def value(self) -> Complex:
        """The number now."""
        return Complex(self._parts[0].value, self._parts[1].value)

    @value.setter
    def value(self, number: Complex) -> None:
        self._parts[0].value, self._parts[1].value = number.real, number.imaginary
