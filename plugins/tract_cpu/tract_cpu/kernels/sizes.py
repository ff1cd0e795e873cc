"""Sizes, which are arguments of kernels, as elements of tensors; and sizes that must be equal."""

from __future__ import annotations

from tract_llvm.language.types import INDEX, ElementType

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel


@frozen
class SizesPlan:
    """Writes ``count`` sizes as 64-bit integers."""

    count: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "sizes"

    def text(self) -> str:
        """All that it says."""
        return f"sizes {self.count}"

    def emit(self, k: Kernel) -> None:
        """result[i] = the i-th size, by whoever does task 0."""
        result = k.memory(INDEX)
        with k.loop("task", k.end, k.begin):
            for place in range(self.count):
                result[place] = k.size()


@frozen
class EqualPlan:
    """Refuses unless the sizes of ``count`` pairs are equal."""

    count: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "check"

    def text(self) -> str:
        """All that it says."""
        return f"equal {self.count}"

    def emit(self, k: Kernel) -> None:
        """The status becomes 1 where the two sizes of a pair differ."""
        status = k.memory(INDEX)
        with k.loop("task", k.end, k.begin):
            for _ in range(self.count):
                with k.when(k.size().differs(k.size())):
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

    def text(self) -> str:
        """All that it says."""
        return f"range of axis {self.start.name} {self.end.name}"

    def emit(self, k: Kernel) -> None:
        """The status becomes 1 where the range has not as many elements as wanted, or is not inside of the axis."""
        status = k.memory(INDEX)
        first, last = (k.convert(k.memory(one)[0], INDEX) for one in (self.start, self.end))
        length, size = k.size(), k.size()
        fits = (first >= 0) & (last <= size) & (last - first).equals(length)
        with k.loop("task", k.end, k.begin), k.when(~fits):
            status[0] = k.index(1)
