"""Elements, or runs of them, read from or written to places that a tensor of indices names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tract_llvm.elements.scatter import COMBINED
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import INDEX, U64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Each, Memory, Signature, Size, Sizes

PLACES: Final = 64
"""How many places of a single loop are one task."""


@frozen
class IndexedPlan:
    """Loops over three tensors: one that has places with numbers, the numbers, and one whose elements go there or back.

    ``element``: what is moved; ``index``: the type of the numbers. ``rank``: how many loops there are over places.
    ``coordinates``: how many numbers name a place. ``run``: how the elements of one place are moved, ``None`` where it
    is one. ``writes``: the way to the places, else from there; ``combine``: what then becomes of what is there, a key
    of `COMBINED` or ``"none"``. ``refuses``: whether a number outside makes the kernel refuse, or is left out.
    """

    element: ElementType
    index: ElementType
    rank: int
    coordinates: int
    run: Run | None
    writes: bool
    combine: str
    refuses: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "scatter" if self.writes else "gather"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(
            Sizes("sizes", self.rank),
            Size("run"),
            Memory("x", self.element),
            Memory("numbers", self.index),
            Memory("other", self.element),
            Size("step"),
            Each.of("limits", self.coordinates, Size("places"), Size("stride")),
            Each.of("loops", self.rank, Sizes("strides", 3)),
            *([Memory("status", INDEX)] if self.refuses else []),
        )

    def emit(self, k: Kernel) -> None:
        """other[i, j, ...] = x[i, j, ..., numbers[i, j, ...]], or the other way round."""
        taken = self.signature.taken(k)
        sizes, run = taken.sizes("sizes"), taken.size("run")
        tensors = _Places(taken.memory("x"), taken.memory("numbers"), taken.memory("other"))
        step, limits = taken.size("step"), [(one.size("places"), one.size("stride")) for one in taken.each("limits")]
        strides = [one.sizes("strides") for one in taken.each("loops")]
        status = taken.memory("status") if self.refuses else None

        def move(at: _Places) -> None:
            inside, offset = self._place(k, at.numbers, step, limits)
            with k.either(inside) as (then, otherwise):
                with then:
                    self._move(k, at.x.at(offset), at.other, run)
                with otherwise:
                    if status is not None:
                        status[0] = k.index(1)

        if self.rank == 1:
            with k.loop("task", k.end, k.begin) as task:
                first = task * PLACES
                with k.loop("place", k.smaller(first + PLACES, sizes[0]), first) as place:
                    move(tensors.at(place, strides[0]))
            return
        with k.loop("axis0", k.end, k.begin) as place:
            self._nested(k, tensors.at(place, strides[0]), (sizes, strides), move)

    def _nested(
        self,
        k: Kernel,
        at: _Places,
        loops: tuple[Sequence[Value], Sequence[Sequence[Value]]],
        move: Callable[[_Places], None],
        axis: int = 1,
    ) -> None:
        sizes, strides = loops
        with k.loop(f"axis{axis}", sizes[axis]) as place:
            inner = at.at(place, strides[axis])
            if axis == self.rank - 1:
                move(inner)
            else:
                self._nested(k, inner, loops, move, axis + 1)

    def _place(
        self, k: Kernel, numbers: Buffer, step: Value, limits: Sequence[tuple[Value, Value]]
    ) -> tuple[Value, Value]:
        """Whether all coordinates are inside, and where the place is. Negative ones count from the end."""
        inside: Value | None = None
        offset = k.index(0)
        for coordinate, (size, stride) in enumerate(limits):
            number = k.convert(numbers[step * coordinate], INDEX)
            number = k.select(number < 0, number + size, number)
            fits = number.bits(U64) < size.bits(U64)
            inside = fits if inside is None else inside & fits
            offset = offset + number * stride
        assert inside is not None  # there is a coordinate at least
        return inside, offset

    def _move(self, k: Kernel, x: Buffer, other: Buffer, size: Value) -> None:
        if not self.writes:
            if self.run is None:
                other[0] = x[0]
            else:
                self.run.copy(k, x, other, size)
        elif self.combine != "none":
            with k.loop("run", size) as place:
                x[place] = COMBINED[self.combine](x[place], other[place])
        elif self.run is None:
            x[0] = other[0]
        else:
            self.run.copy(k, other, x, size)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """One place in each of the three tensors."""

    x: Buffer
    numbers: Buffer
    other: Buffer

    def at(self, place: Value, strides: Sequence[Value]) -> _Places:
        """So many rounds of a loop further on."""
        x, numbers, other = (place * stride for stride in strides)
        return _Places(self.x.at(x), self.numbers.at(numbers), self.other.at(other))
