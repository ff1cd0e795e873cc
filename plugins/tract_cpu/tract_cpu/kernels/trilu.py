"""The part of matrices above or below a diagonal."""

from __future__ import annotations

from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size


@frozen
class TriluPlan:
    """``element``: an integer of the width of what is moved; ``diagonal``: the type of the number of the diagonal.

    ``upper``: whether what lies above the diagonal stays, else what lies below.
    """

    element: ElementType
    diagonal: ElementType
    upper: bool
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "trilu"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        tensors = Memory("source", self.element), Memory("diagonal", self.diagonal), Memory("target", self.element)
        return Signature.of(Size("rows"), Size("columns"), *tensors)

    def emit(self, k: Kernel) -> None:
        """Row by row: a part is copied, the other one is 0. A task is a row."""
        taken = self.signature.taken(k)
        rows, columns = taken.size("rows"), taken.size("columns")
        source, diagonal, target = map(taken.memory, ("source", "diagonal", "target"))
        last = _between(k, k.convert(diagonal[0], INDEX), -rows, columns)
        zero = k.constant(0, self.element)
        with k.loop("task", k.end, k.begin) as task:
            read, written = source.at(task * columns), target.at(task * columns)
            first_kept = task % rows + last + (0 if self.upper else 1)
            cut = _between(k, first_kept, k.index(0), columns)
            if self.upper:
                self.run.fill(k, zero, written, cut)
                self.run.copy(k, read.at(cut), written.at(cut), columns - cut)
            else:
                self.run.copy(k, read, written, cut)
                self.run.fill(k, zero, written.at(cut), columns - cut)


def _between(k: Kernel, number: Value, low: Value, high: Value) -> Value:
    return k.smaller(k.select(number < low, low, number), high)
