"""Sizes, which are arguments of kernels, as elements of tensors; and sizes that must be equal."""

from __future__ import annotations

from tract_llvm.language.types import INDEX, ElementType

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size


@frozen
class SizesPlan:
    """Writes ``count`` sizes as 64-bit integers."""

    count: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "sizes"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("result", INDEX), Each.of("sizes", self.count, Size("size")))

    def emit(self, k: Kernel) -> None:
        """result[i] = the i-th size, by whoever does task 0."""
        taken = self.signature.taken(k)
        result = taken.memory("result")
        with k.loop("task", k.end, k.begin):
            for place, size in enumerate(taken.each("sizes")):
                result[place] = size.size("size")


@frozen
class EqualPlan:
    """Refuses unless the sizes of ``count`` pairs are equal."""

    count: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "check"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("status", INDEX), Each.of("pairs", self.count, Size("left"), Size("right")))

    def emit(self, k: Kernel) -> None:
        """The status becomes 1 where the two sizes of a pair differ."""
        taken = self.signature.taken(k)
        status = taken.memory("status")
        with k.loop("task", k.end, k.begin):
            for pair in taken.each("pairs"):
                with k.when(pair.size("left").differs(pair.size("right"))):
                    status[0] = k.index(1)


@frozen
class RangeOfAxisPlan:
    """Refuses unless two numbers are the ends of a range of an axis. ``start``, ``end``: their types."""

    start: ElementType
    end: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "check"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        ends = Memory("start", self.start), Memory("end", self.end)
        return Signature.of(Memory("status", INDEX), *ends, Size("length"), Size("size"))

    def emit(self, k: Kernel) -> None:
        """The status becomes 1 where the range has not as many elements as wanted, or is not inside of the axis."""
        taken = self.signature.taken(k)
        status = taken.memory("status")
        first, last = (k.convert(taken.memory(one)[0], INDEX) for one in ("start", "end"))
        length, size = taken.size("length"), taken.size("size")
        fits = (first >= 0) & (last <= size) & (last - first).equals(length)
        with k.loop("task", k.end, k.begin), k.when(~fits):
            status[0] = k.index(1)
