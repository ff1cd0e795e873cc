"""Numbers that must all be finite."""

from __future__ import annotations

from typing import Final

from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size

CHUNK: Final = 8192
"""How many numbers are one task."""


@frozen
class FinitePlan:
    """Refuses unless all numbers of a type of floats, one behind the other, are finite."""

    element: ElementType
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "finite"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("status", INDEX), Memory("x", self.element), Size("size"))

    def emit(self, k: Kernel) -> None:
        """The status becomes 1 where a number less itself is not 0, as with infinities, and what is no number."""
        taken = self.signature.taken(k)
        status, x, size = taken.memory("status"), taken.memory("x"), taken.size("size")
        with k.loop("task", k.end, k.begin) as task:
            first = task * CHUNK
            part = x.at(first)

            def look(place: Value, lanes: int, mask: Value | None) -> None:
                numbers = part.vector(place, lanes, mask)
                strange = (numbers - numbers).differs(0)
                with k.when(k.any(strange) if lanes else strange):
                    status[0] = k.index(1)

            self.run.each(k, k.smaller(size - first, CHUNK), look)
