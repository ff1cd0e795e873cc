"""Numbers at equal distances."""

from __future__ import annotations

from typing import Final

from tract_llvm.functions.counting import are_so_many
from tract_llvm.language.types import INDEX, ElementType

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size

CHUNK: Final = 4096
"""How many numbers are one task."""

_BOUNDS: Final = ("start", "end", "step")


@frozen
class RangePlan:
    """``element``: the type of the numbers."""

    element: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "range"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        bounds = (Memory(name, self.element) for name in _BOUNDS)
        return Signature.of(Size("length"), *bounds, Memory("result", self.element), Memory("status", INDEX))

    def emit(self, k: Kernel) -> None:
        """result[i] = start + i * step. Refuses where that does not end where it should, after so many steps."""
        taken = self.signature.taken(k)
        length = taken.size("length")
        start, end, step = (taken.memory(name)[0] for name in _BOUNDS)
        result, status = taken.memory("result"), taken.memory("status")
        with k.either(are_so_many(k, self.element, (start, end, step), length)) as (then, otherwise):
            with then, k.loop("task", k.end, k.begin) as task:
                first = task * CHUNK
                with k.loop("place", k.smaller(first + CHUNK, length), first) as place:
                    result[place] = k.convert(place, self.element.computed) * step + start
            with otherwise:
                status[0] = k.index(1)
