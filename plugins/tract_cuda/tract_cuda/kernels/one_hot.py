"""Integers as vectors with one element that differs."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import I64, ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class OneHotPlan:
    """One thread for one element. ``axis``: the loop over the new one; ``index``: the type of the numbers.

    ``rank``: how many loops there are.
    """

    element: ElementType
    index: ElementType
    rank: int
    axis: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "one_hot"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, the numbers and the result in them, and the elements for all places, and for the named one."""
        tensors = (*strided("numbers", self.index, self.rank), *strided("result", self.element, self.rank))
        return (*counted(self.rank), *tensors, Parameter("off", self.element), Parameter("on", self.element))

    def emit(self, k: Kernel) -> None:
        """result[i, place, j] = on where numbers[i, j] is the place, counted from the end too, else off"""
        with position(k, self.rank) as at:
            number = k.convert(k.memory("numbers")[place(k, "numbers", at)], I64)
            here, size = (k.convert(one, I64) for one in (at[self.axis], k.size(f"size{self.axis}")))
            named = number.equals(here) | number.equals(here - size)
            k.memory("result")[place(k, "result", at)] = k.select(named, k.memory("on")[0], k.memory("off")[0])
