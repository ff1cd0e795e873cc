"""Fourier transforms, a launch for each factor of the length; every element of the output by a thread of its own.

Behind the stages so far, transforms of a ``length`` stand side by side. A stage joins ``radix`` of them to one, whose
element q is the sum of their elements, each times a root of one: those of the whole transform are in a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class FftPlan:
    """One thread for one complex number, in so many loops over rows, and one along them.

    ``source``, ``target``: the types of the parts of numbers; ``computed``: of sums. ``windowed``: whether what is read
    is multiplied by a number for each position.
    ``rank``: how many loops over rows there are; ``radix``: how many numbers are joined to one.
    """

    source: ElementType
    target: ElementType
    computed: ElementType
    rank: int
    radix: int
    windowed: bool

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "fft"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, both tensors in them, what is read along the last one, ``data.step`` apart; parts of numbers.

        ``length``: of the transforms that are there; ``points``: of the whole one; its roots.
        """
        tensors = (*strided("data", self.source, self.rank), *strided("result", self.target, self.rank))
        numbers = map(Parameter, ("data.step", "data.part", "result.part", "length", "points"))
        window = (Parameter("window", self.computed),) if self.windowed else ()
        return (*counted(self.rank), *tensors, *numbers, Parameter("roots", self.computed), *window)

    def emit(self, k: Kernel) -> None:
        """result[o] = sum of data[j + i * points / radix] * root[i * q]"""
        data, roots = k.memory("data"), k.memory("roots")
        length, points = k.size("length"), k.size("points")
        with position(k, self.rank) as at:
            source, target = place(k, "data", at), place(k, "result", at)
            joined = length * self.radix
            begin, q = k.divided(at[-1], joined)
            first = begin * length + k.divided(q, length)[1]
            apart, step = k.divided(points, k.index(self.radix))[0], k.divided(points, joined)[0]
            real, imaginary = (k.variable(k.constant(0.0, self.computed)) for _ in range(2))
            with k.loop("part", self.radix) as number:
                spot = first + number * apart
                there = source + spot * k.size("data.step")
                x, y = (k.convert(data[one], self.computed) for one in (there, there + k.size("data.part")))
                if self.windowed:
                    factor = k.memory("window")[spot]
                    x, y = x * factor, y * factor
                root = k.divided(number * q * step, points)[1] * 2
                c, s = roots[root], roots[root + 1]
                real.value = real.value + (x * c - y * s)
                imaginary.value = imaginary.value + (x * s + y * c)
            k.memory("result")[target] = real.value
            k.memory("result")[target + k.size("result.part")] = imaginary.value
