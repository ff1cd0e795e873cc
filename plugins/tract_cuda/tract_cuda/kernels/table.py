"""Bytes that a table says other elements for."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import U8, ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter


@frozen
class TablePlan:
    """One thread for one byte, in so many loops. ``element``: of the table.

    ``rank``: how many loops there are.
    """

    element: ElementType
    rank: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "table"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, the bytes and the result in them, and the table."""
        tensors = (*strided("data", U8, self.rank), *strided("result", self.element, self.rank))
        return (*counted(self.rank), *tensors, Parameter("table", self.element))

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = table[data[i, j, ...]]"""
        with position(k, self.rank) as at:
            byte = k.memory("data")[place(k, "data", at)]
            k.memory("result")[place(k, "result", at)] = k.memory("table")[k.convert(byte, k.positions)]
