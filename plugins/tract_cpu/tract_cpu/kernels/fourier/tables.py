"""The tables of Fourier transforms whose length only a run tells: what `tract_cpu.lower.waves` makes of known ones."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import pi
from typing import Final

from tract_llvm.functions.rounding import whole
from tract_llvm.functions.trigonometric import sine_and_cosine
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import where
from tract_llvm.language.types import F64, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.fourier.butterflies import Complex
from tract_cpu.kernels.fourier.passes import Numbers, Passes
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size, Taken

MOST_PASSES: Final = 64
"""More than a length of 64 bits has factors."""


_NUMBERS: Final = ("factors", "chirp", "spectrum", "roots")


@frozen
class TablesPlan:
    """``element``: in which the transforms are computed. ``radices``: passes that are written out.

    ``most_summed``: the largest prime that gets a pass besides. ``lanes``: of vectors of f64.
    """

    element: ElementType
    radices: tuple[int, ...]
    most_summed: int
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "fft.tables"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        numbers = (Memory(name, self.element) for name in _NUMBERS)
        heads = Memory("passes", INDEX), Memory("places", INDEX)
        return Signature.of(Memory("status", INDEX), Size("length"), *heads, *numbers)

    def emit(self, k: Kernel) -> None:
        """One task; a length of 0 is refused."""
        taken = self.signature.taken(k)
        status, length = taken.memory("status"), taken.size("length")
        with k.loop("task", k.end, k.begin), k.either(length > 0) as (then, otherwise):
            with then:
                _Tables(self, k, length, taken).write()
            with otherwise:
                status[0] = k.index(1)


class _Tables:
    """The tables while they are written."""

    def __init__(self, plan: TablesPlan, k: Kernel, length: Value, taken: Taken) -> None:
        self._plan, self._k, self._length = plan, k, length
        head = taken.memory("passes")
        self._inner, self._count, self._rows = head, head.at(1), head.at(2)
        self._places = taken.memory("places")
        self._factors, self._chirp, self._spectrum, self._roots = (Numbers(taken.memory(name), 0) for name in _NUMBERS)

    def write(self) -> None:
        """All of them; those of a convolution where the length is that of one."""
        k = self._k
        size = k.variable(self._length)
        with k.when(self._passes_of(size.value) > self._plan.most_summed):
            size.value = self._convolution_length()
            self._passes_of(size.value)
        inner = size.value
        self._inner[0] = inner
        self._write_places()
        self._write_roots(inner)
        self._write_factors(inner)
        with k.when(inner.differs(self._length)):
            self._write_chirp(inner)

    def _passes_of(self, size: Value) -> Value:
        """Radices and spans of the passes over so many numbers. Gives the largest prime besides `radices`."""
        k = self._k
        count, rest, largest, span = (k.variable(one) for one in (k.index(0), size, k.index(1), k.index(1)))

        def take(radix: Value) -> None:
            with k.loop_while("factor", lambda: (rest.value % radix).equals(0)):
                row = self._rows.at(count.value * 3)
                row[0], row[1] = radix, span.value
                count.value, rest.value, span.value = count.value + 1, rest.value // radix, span.value * radix

        for radix in self._plan.radices:
            take(k.index(radix))
        prime = k.variable(k.index(7))
        with k.loop_while("prime", lambda: rest.value > 1):
            prime.value = where(prime.value * prime.value > rest.value, rest.value, prime.value)
            largest.value = where((rest.value % prime.value).equals(0), prime.value, largest.value)
            take(prime.value)
            prime.value = prime.value + 2
        self._count[0] = count.value
        return largest.value

    def _convolution_length(self) -> Value:
        k = self._k
        found = k.variable(k.index(1))
        with k.loop_while("double", lambda: found.value < self._length * 2 - 1):
            found.value = found.value * 2
        return found.value

    def _write_places(self) -> None:
        """Those for the first passes are there; with one more, they are there ``radix`` times.

        Backwards, so that none is overwritten before it was read.
        """
        k, places = self._k, self._places
        places[0] = k.index(0)
        with self._each_pass() as (radix, span, _), k.loop("block", span) as block:
            before = span - 1 - block
            place = places[before]
            with k.loop("digit", radix) as digit:
                places[before * radix + digit] = place + digit * span

    def _write_roots(self, inner: Value) -> None:
        k, count = self._k, self._k.convert(inner, F64)

        def some(place: Value, lanes: int, _mask: Value | None) -> None:
            number = k.convert(place, F64)
            if lanes:
                number = number + k.convert(k.lanes(lanes), F64)
            root = _root(number, count)
            if not lanes:
                self._roots[place] = root
                return
            order = [one + half for one in range(lanes) for half in (0, lanes)]
            self._roots.at(place).memory.put(0, k.shuffled(root.real, root.imaginary, order))

        Run(self._plan.lanes, masked=False).each(k, inner, some)

    def _write_factors(self, inner: Value) -> None:
        k = self._k
        written = k.variable(k.index(0))
        with self._each_pass() as (radix, span, row):
            row[2] = written.value
            step = inner // (radix * span)
            with k.loop("number", span) as j, k.loop("factor", radix, 1) as i:
                self._factors[written.value] = self._roots[i * j * step]
                written.value = written.value + 1
            with k.when(radix > max(self._plan.radices)), k.loop("root", radix) as i:
                self._factors[written.value] = self._roots[i * step * span]
                written.value = written.value + 1

    def _write_chirp(self, inner: Value) -> None:
        """The chirp, and the transform of its conjugate to both sides of 0, divided by the number of elements."""
        k, length, places, spectrum = self._k, self._length, self._places, self._spectrum
        zero, count = k.constant(0, self._plan.element), k.convert(length * 2, F64)
        with k.loop("clear", inner) as place:
            spectrum[place] = Complex(zero, zero)
        scale = 1.0 / k.convert(inner, self._plan.element)
        with k.loop("chirp", length) as place:
            root = _root(k.convert(place * place % (length * 2), F64), count)
            self._chirp[place] = root
            number = self._chirp[place]
            conjugate = Complex(number.real, -number.imaginary).times(scale)
            spectrum[places[place]] = conjugate
            spectrum[places[(inner - place) % inner]] = conjugate
        passes = Passes(self._plan.radices, False, self._count[0], self._rows, self._factors, spectrum)
        passes.go_over(k, spectrum, inner)

    @contextmanager
    def _each_pass(self) -> Generator[tuple[Value, Value, Buffer]]:
        """Goes round for every pass: its radix, its span, and its row."""
        with self._k.loop("pass", self._count[0]) as number:
            row = self._rows.at(number * 3)
            yield row[0], row[1], row


def _root(place: Value, count: Value) -> Complex:
    """exp(-2 pi i place / count), of whole numbers in f64: what is left of the nearest quarter turn is exact."""
    quarter = whole(place * 4.0 / count)
    angle = (place * 4.0 - quarter * count) / count * (pi / 2)
    sine, cosine = sine_and_cosine(angle, angle.like(0))
    odd = quarter.equals(1) | quarter.equals(3)
    real, imaginary = where(odd, -sine, cosine), where(odd, -cosine, -sine)
    back = quarter.equals(2) | quarter.equals(3)
    return Complex(where(back, -real, real), where(back, -imaginary, imaginary))
