"""Complex numbers in registers, and the Fourier transforms of a few of them, written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from tract_llvm.language.values import Value


@dataclass(frozen=True, slots=True, eq=False)
class Complex:
    """A complex number, or as many as vectors have lanes: their real parts, and their imaginary parts."""

    real: Value
    imaginary: Value

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.real + other.real, self.imaginary + other.imaginary)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imaginary - other.imaginary)

    def __mul__(self, other: Complex) -> Complex:
        real = self.real.times_plus(other.real, -(self.imaginary * other.imaginary))
        return Complex(real, self.real.times_plus(other.imaginary, self.imaginary * other.real))

    def times(self, factor: Value | float) -> Complex:
        """The product with a real number."""
        return Complex(self.real * factor, self.imaginary * factor)

    def times_plus(self, factor: Value | float, term: Complex) -> Complex:
        """The product with a real number, plus a complex one."""
        return Complex(self.real.times_plus(factor, term.real), self.imaginary.times_plus(factor, term.imaginary))

    def back(self) -> Complex:
        """The product with -i: a quarter turn backwards."""
        return Complex(self.imaginary, -self.real)

    def swapped(self) -> Complex:
        """Real and imaginary part in each other's place: a transform between two swaps is the inverse one."""
        return Complex(self.imaginary, self.real)

    def turned(self, part: int, of: int) -> Complex:
        """The product with exp(-2 pi i part / of), for a part of at most half of it."""
        if part == 0:
            return self
        if 4 * part == of:
            return self.back()
        if 8 * part == of:
            return (self + self.back()).times(sin(pi / 4))
        if 8 * part == 3 * of:
            return (self.back() - self).times(sin(pi / 4))
        angle = -2 * pi * part / of
        return self.times(cos(angle)) + self.back().times(-sin(angle))


def transformed(numbers: Sequence[Complex]) -> list[Complex]:
    """The Fourier transform of a few numbers: halves of an even count by themselves, an odd count by `_odd`."""
    count = len(numbers)
    if count == 1:
        return list(numbers)
    if count % 2:
        return _odd(numbers)
    even = transformed(numbers[::2])
    odd = [one.turned(place, count) for place, one in enumerate(transformed(numbers[1::2]))]
    pairs = list(zip(even, odd, strict=True))
    return [a + b for a, b in pairs] + [a - b for a, b in pairs]


def _odd(numbers: Sequence[Complex]) -> list[Complex]:
    """Numbers at equal distances from both ends meet the same cosines, and opposite sines."""
    first, count = numbers[0], len(numbers)
    half = range(1, count // 2 + 1)
    sums = [numbers[k] + numbers[-k] for k in half]
    differences = [(numbers[k] - numbers[-k]).back() for k in half]
    total = first
    for one in sums:
        total += one
    low, high = list[Complex](), list[Complex]()
    for q in half:
        angles = [2 * pi * (k * q % count) / count for k in half]
        even, odd = first, differences[0].times(sin(angles[0]))
        for angle, one in zip(angles, sums, strict=True):
            even = one.times_plus(cos(angle), even)
        for angle, one in zip(angles[1:], differences[1:], strict=True):
            odd = one.times_plus(sin(angle), odd)
        low.append(even + odd)
        high.append(even - odd)
    return [total, *low, *reversed(high)]
