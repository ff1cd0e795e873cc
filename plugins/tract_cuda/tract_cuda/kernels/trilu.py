"""The part of matrices above or below a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import I64, ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class TriluPlan:
    """One thread for one element; the last two loops are rows and columns. ``diagonal``: the type of its number.

    ``upper``: which triangle stays; ``rank``: how many loops there are.
    """

    element: ElementType
    diagonal: ElementType
    upper: bool
    rank: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "trilu"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, both tensors in them, and the number of the diagonal."""
        tensors = (*strided("data", self.element, self.rank), *strided("result", self.element, self.rank))
        return (*counted(self.rank), *tensors, Parameter("diagonal", self.diagonal))

    def emit(self, k: Kernel) -> None:
        """result[..., i, j] = data[..., i, j] where j - i is at least the number, or at most, else 0"""
        with position(k, self.rank) as at:
            distance, diagonal = k.convert(at[-1] - at[-2], I64), k.convert(k.memory("diagonal")[0], I64)
            kept = distance >= diagonal if self.upper else distance <= diagonal
            found = k.memory("data")[place(k, "data", at)]
            k.memory("result")[place(k, "result", at)] = k.select(kept, found, 0)
