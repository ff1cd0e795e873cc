"""How a Fourier transform of a known length is cut into passes, and the numbers that these multiply by.

A length that is a product of small numbers takes a pass for each of them (Cooley and Tukey). What a large prime divides
becomes a convolution with a chirp, whose length is a power of two (Bluestein).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from tract_core.plugins.keys import Array

RADICES: Final = (4, 2, 3, 5)
"""What passes are written out for. Any other prime is summed up as the definition says."""

MOST_SUMMED: Final = 127
"""The largest prime that is summed up; the convolution has fewer operations for larger ones."""


def radices_of(length: int) -> list[int]:
    """Factors of a length, the first pass first: those of `RADICES`, then the other primes."""
    found: list[int] = []
    for radix in RADICES:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    prime = 7
    while length > 1:
        if prime * prime > length:
            prime = length
        while length % prime == 0:
            found.append(prime)
            length //= prime
        prime += 2
    return found


def convolution_length(length: int) -> int:
    """How long the convolution is that stands for a transform."""
    return 1 << (2 * length - 2).bit_length()


@dataclass(frozen=True)
class Waves:
    """The tables of a transform of ``length`` complex numbers, as `tract_cpu.kernels.fft` reads them.

    A length that only a run tells has the same tables, which `tract_cpu.kernels.fourier.tables` writes.
    """

    length: int

    @cached_property
    def is_convolution(self) -> bool:
        """Whether the length has a prime factor that is too large to be summed up."""
        return max(radices_of(self.length), default=1) > MOST_SUMMED

    @cached_property
    def inner(self) -> int:
        """How long the transforms are that are computed in passes: longer than ``length`` for a convolution."""
        return convolution_length(self.length) if self.is_convolution else self.length

    @cached_property
    def radices(self) -> list[int]:
        """The factors of ``inner``, the first pass first."""
        return radices_of(self.inner)

    def passes(self) -> Array:
        """The inner length and the number of passes; for each: radix, transforms so far, where its factors are."""
        rows, span, where = [self.inner, len(self.radices)], 1, 0
        for radix in self.radices:
            rows += [radix, span, where]
            where += (radix - 1) * span + (0 if radix in RADICES else radix)
            span *= radix
        return np.array(rows, np.int64)

    def places(self) -> Array:
        """Where each element has to be before the first pass."""
        found, rest, size = np.zeros(self.inner, np.int64), np.arange(self.inner), self.inner
        for radix in reversed(self.radices):
            size //= radix
            found += rest % radix * size
            rest //= radix
        return found

    def factors(self, dtype: Any) -> Array:
        """What each pass multiplies by: pairs; behind those of a radix that is summed up its roots of one."""
        roots, span = _roots(np.arange(self.inner), self.inner), 1
        parts = [roots[:0]]
        for radix in self.radices:
            step = self.inner // (span * radix)
            parts.append(roots[step * np.outer(np.arange(span), np.arange(1, radix))].ravel())
            if radix not in RADICES:
                parts.append(roots[:: self.inner // radix])
            span *= radix
        return _pairs(np.concatenate(parts), dtype)

    def chirp(self, dtype: Any) -> Array:
        """exp(-pi i j**2 / length): pairs."""
        return _pairs(self._chirp(), dtype)

    def spectrum(self, dtype: Any) -> Array:
        """The transform of the conjugate chirp, to both sides of 0, divided by ``inner``: pairs."""
        chirp = self._chirp().conj()
        both = np.zeros(self.inner, np.complex128)
        both[: self.length] = chirp
        both[self.inner - self.length + 1 :] = chirp[:0:-1]
        return _pairs(np.fft.fft(both) / self.inner, dtype)

    def _chirp(self) -> Any:
        places = np.arange(self.length)
        return _roots(places * places, 2 * self.length)


def across(rows: int, columns: int, dtype: Any) -> Array:
    """exp(-2 pi i row column / (rows columns)): all real parts, then all imaginary parts."""
    found = _roots(np.outer(np.arange(rows), np.arange(columns)), rows * columns)
    return np.stack([found.real, found.imag]).astype(dtype)


def _roots(places: Any, count: int) -> Any:
    """exp(-2 pi i place / count), of the rest of at most an eighth of a turn, so that no digit is lost."""
    places = places % count
    quarters = (8 * places + count) // (2 * count)
    rest = np.exp(-0.5j * np.pi * ((4 * places - quarters * count) / count))
    return rest * np.array([1, -1j, -1, 1j])[quarters % 4]


def _pairs(numbers: Any, dtype: Any) -> Array:
    return np.stack([numbers.real, numbers.imag], axis=-1).astype(dtype)


def splits(length: int, lanes: int, most: int) -> Sequence[int]:
    """Two factors of a length, as near to each other as can be, the second one with a whole number of vectors.

    Empty where there are none of at most ``most``.
    """
    fits = [one for one in range(lanes, most + 1, lanes) if length % one == 0 and 1 < length // one <= most]
    if not fits:
        return ()
    columns = min(fits, key=lambda one: max(one, length // one))
    return (length // columns, columns)
