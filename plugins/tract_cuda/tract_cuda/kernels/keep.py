"""What stays for the next turn, written once nothing can go wrong with this one any more."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import I32, ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class KeepPlan:
    """One thread for one element. Nothing is written where a kernel refused to do its work.

    ``rank``: how many loops there are.
    """

    element: ElementType
    rank: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "keep"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, what is there now, where it is kept, and what a kernel that refused has written."""
        tensors = (*strided("source", self.element, self.rank), *strided("kept", self.element, self.rank))
        return (*counted(self.rank), *tensors, Parameter("refused", I32))

    def emit(self, k: Kernel) -> None:
        """kept[i, j, ...] = source[i, j, ...]"""
        with position(k, self.rank) as at, k.when(k.memory("refused")[0].equals(0)):
            k.memory("kept")[place(k, "kept", at)] = k.memory("source")[place(k, "source", at)]
