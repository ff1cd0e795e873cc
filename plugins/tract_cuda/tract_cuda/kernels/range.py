"""Numbers at equal distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.functions.counting import are_so_many
from tract_llvm.language.types import I32, ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.gather import refuse
from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.kernel import Kernel, Parameter

_BOUNDS: Final = ("start", "end", "step")


@frozen
class RangePlan:
    """One thread for one number, of a type, and at least one, which looks at the bounds."""

    element: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "range"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many numbers there are, the bounds, and the result."""
        bounds = (Parameter(name, self.element) for name in _BOUNDS)
        return (Parameter("length"), *bounds, Parameter("result", self.element), Parameter("status", I32))

    def emit(self, k: Kernel) -> None:
        """result[i] = start + i * step. Refuses where that does not end where it should, after so many steps."""
        number, length = k.block() * THREADS + k.thread(), k.size("length")
        start, end, step = (k.memory(name)[0] for name in _BOUNDS)
        with k.when(~are_so_many(k, self.element, (start, end, step), length)):
            refuse(k)
        with k.when(number < length):
            k.memory("result")[number] = k.convert(number, self.element.computed) * step + start
