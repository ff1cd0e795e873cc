"""Fourier transforms: as many at once as a vector has lanes, in passes over scratch memory.

A task takes one transform for each lane. Their elements are laid down in the order that the passes want, real and
imaginary parts apart; a pass joins ``radix`` transforms of ``span`` elements into one, in place, by multiplying them by
roots of one and transforming across (Cooley and Tukey). Where few transforms are left, or where they are so long that a
vector of them would not stay in the cache, they are computed one by one, by the same code without vectors.

A length with a large prime factor is transformed as a convolution with a chirp (Bluestein): a transform of a longer
length, a product with the spectrum of the chirp, and the transform back.
"""

from __future__ import annotations

from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import F32, F64, INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.fourier.butterflies import Complex
from tract_cpu.kernels.fourier.ends import End, Lying
from tract_cpu.kernels.fourier.passes import Numbers, Passes
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memories, Memory, Signature, Size

FEW: Final = 4
"""One part in so many of the lanes: where fewer transforms are left, they are computed one by one."""


def sums_of(element: ElementType) -> ElementType:
    """The type in which numbers are transformed: what cancels out in f32 would leave its error in the result."""
    return F64 if element == F32 else element.computed


@frozen
class FftPlan:
    """``source``, ``target``: the types of what is read and written, and how it lies. ``outer``: loops over transforms.

    ``radices``: which passes are written out; ``summed``: whether there are others. ``chirps``: whether the length may
    be that of a convolution. ``lanes``: of a vector. ``window``: whether elements are multiplied by numbers first;
    ``across``: whether results are multiplied by complex numbers, for transforms that are part of longer ones.
    ``swaps``: whether real and imaginary parts change places when they are read, and when they are written, which makes
    the inverse transform of one.
    """

    source: tuple[ElementType, Lying]
    target: tuple[ElementType, Lying]
    outer: int
    radices: tuple[int, ...]
    summed: bool
    chirps: bool
    lanes: int
    window: bool
    across: bool
    swaps: tuple[bool, bool]

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "fft"

    @property
    def computed(self) -> ElementType:
        """The type of the sums."""
        return sums_of(self.source[0])

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        computed = self.computed
        return Signature.of(
            *map(Size, ("count", "length", "most")),
            Memory("passes", INDEX),
            Memory("places", INDEX),
            Memory("factors", computed),
            Memories("chirps", (computed, computed) if self.chirps else ()),
            Memories("window", (computed,) if self.window else ()),
            Each.of("across", int(self.across), Memory("numbers", computed), Size("columns")),
            Memory("source", self.source[0]),
            Size("source_step"),
            Memory("target", self.target[0]),
            Size("target_step"),
            Each.loop("outer", self.outer, 2),
        )

    def emit(self, k: Kernel) -> None:
        """target[..., q, ...] = the sum over p of source[..., p, ...] exp(-2 pi i p q / length)"""
        passed = _Passed(self, k)
        with k.loop("task", k.end, k.begin) as task:
            first = task * self.lanes
            left = k.smaller(passed.count - first, self.lanes)
            few = (left * FEW <= self.lanes) | (passed.inner > passed.most)
            with k.either(few) as (then, otherwise):
                with then, k.loop("single", left) as one:
                    _Transforms(self, k, passed, 0).compute(first + one, k.index(1))
                with otherwise:
                    _Transforms(self, k, passed, self.lanes).compute(first, left)


class _Passed:
    """The arguments."""

    def __init__(self, plan: FftPlan, k: Kernel) -> None:
        taken = plan.signature.taken(k)
        self.count, self.length, self.most = map(taken.size, ("count", "length", "most"))
        self.passes, self.places, self.factors = map(taken.memory, ("passes", "places", "factors"))
        self.chirps = taken.memories("chirps") or None
        self.window = next(iter(taken.memories("window")), None)
        across = [(one.memory("numbers"), one.size("columns")) for one in taken.each("across")]
        self.across = across[0] if across else None
        self.source, self.source_step = taken.memory("source"), taken.size("source_step")
        self.target, self.target_step = taken.memory("target"), taken.size("target_step")
        self.outer = [(one.size("size"), one.sizes("strides")) for one in taken.each("outer")]
        self.inner = self.passes[0]
        self.is_convolution = self.inner.differs(self.length)


class _Transforms:
    """Some transforms side by side, one for each lane, while they are written; one where there are 0 lanes."""

    def __init__(self, plan: FftPlan, k: Kernel, passed: _Passed, lanes: int) -> None:
        self._plan, self._k, self._passed, self._lanes = plan, k, passed, lanes
        self._work = Numbers(k.scratch(plan.computed), lanes)
        self._offsets = (k.own(INDEX, max(lanes, 1)), k.own(INDEX, max(lanes, 1)))
        terms = self._work.at(passed.inner * (2 if plan.chirps else 1))
        factors = Numbers(passed.factors, 0)
        self._passes = Passes(plan.radices, plan.summed, passed.passes[1], passed.passes.at(2), factors, terms)

    def compute(self, first: Value, left: Value) -> None:
        """The transforms from a number on; lanes beyond ``left`` do what the last of these does."""
        self._find(first, left)
        ends = self._ends(first, left)
        length, work = self._passed.length, self._work
        if self._passed.chirps is not None:
            self._clear()
        ends[0].read(length, work, self._passed.places, self._passed.window)
        if self._passed.chirps is not None:
            work = self._convolved(*(Numbers(one, 0) for one in self._passed.chirps))
        else:
            self._passes.go_over(self._k, work, self._passed.inner)
        if self._passed.across is not None:
            self._cross(first, *self._passed.across)
        ends[1].write(length, work)

    def _find(self, first: Value, left: Value) -> None:
        """Where the transform of each lane begins."""
        k = self._k
        with k.loop("lane", max(self._lanes, 1)) as lane:
            number, places = first + k.smaller(lane, left - 1), (k.index(0), k.index(0))
            for size, strides in reversed(self._passed.outer):
                position, number = number % size, number // size
                places = (places[0] + position * strides[0], places[1] + position * strides[1])
            for offsets, place in zip(self._offsets, places, strict=True):
                offsets[lane] = place

    def _ends(self, first: Value, left: Value) -> tuple[End, End]:
        k, plan, passed = self._k, self._plan, self._passed
        neighbours = left.equals(self._work.width)
        if passed.outer:
            size = passed.outer[-1][0]
            neighbours &= first % size + self._work.width <= size
        pairs = zip(
            (passed.source, passed.target),
            (passed.source_step, passed.target_step),
            (plan.source[1], plan.target[1]),
            self._offsets,
            plan.swaps,
            strict=True,
        )
        source, target = (
            End(k, at, step, lying, where, neighbours, swaps, plan.computed) for at, step, lying, where, swaps in pairs
        )
        return source, target

    def _cross(self, first: Value, numbers: Buffer, columns: Value) -> None:
        """Times the numbers of these transforms, of which as many as there are lanes are beside each other."""
        k, length = self._k, self._passed.length
        with k.loop("cross", length) as place:
            at = numbers.at(place * columns + first % columns)
            factor = Complex(at.vector(0, self._lanes), at.vector(length * columns, self._lanes))
            self._work[place] = self._work[place] * factor

    # ---- convolutions with a chirp

    def _clear(self) -> None:
        """The numbers behind the signal are zeros."""
        k, passed = self._k, self._passed
        zero = k.constant(0, self._plan.computed, self._lanes)
        with k.loop("clear", passed.inner, passed.length) as place:
            self._work[passed.places[place]] = Complex(zero, zero)

    def _convolved(self, chirp: Numbers, spectrum: Numbers) -> Numbers:
        """Transform, multiply by the spectrum of the chirp, and transform back, as `compute` says.

        The way back is the same transform of numbers whose parts are swapped. Where the length is that of no
        convolution, nothing but the first transform happens.
        """
        k, passed, work = self._k, self._passed, self._work
        rounds = k.select(passed.is_convolution, k.index(2), k.index(1))
        with k.when(passed.is_convolution), k.loop("chirp", passed.length) as place:
            at = passed.places[place]
            work[at] = work[at] * chirp[place]
        with k.loop("round", rounds) as number:
            self._passes.go_over(k, work.at(number * passed.inner), passed.inner)
            with k.when(number + 1 < rounds), k.loop("product", passed.inner) as place:
                back = work.at(passed.inner + passed.places[place])
                back[0] = (work[place] * spectrum[place]).swapped()
        found = work.at((rounds - 1) * passed.inner)
        with k.when(passed.is_convolution), k.loop("chirp", passed.length) as place:
            found[place] = found[place].swapped() * chirp[place]
        return found
