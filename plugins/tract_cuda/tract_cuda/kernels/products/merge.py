"""Parts of sums, which other blocks summed, added up in order, with what is computed of each sum."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import ElementType

from tract_core.frozen import frozen
from tract_cuda.kernels.product import AXES
from tract_cuda.kernels.sums import give, results
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 128


@frozen
class MergePlan:
    """One thread for one element. ``sums``: the type of the parts, which lie [part, pair, row, column] without gaps.

    ``expression``: what is computed of each sum, rounded to the type of its first input, and of the operands.
    """

    sums: ElementType
    expression: Expression

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "merge"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``apart``: elements from one part to the next, which are all of the result; each tensor, and its strides."""
        numbers = (Parameter("parts"), Parameter("apart"), *sizes("size", AXES))
        return (*numbers, Parameter("sums", self.sums), *results(self.expression, AXES))

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of parts[s, p, i, j] over s, operands[p, i, j], ...)"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("apart")):
            at = k.spot(number, k.sizes("size", AXES))
            total, parts = k.variable(k.constant(0, self.sums)), k.memory("sums")
            with k.loop("part", k.size("parts")) as part:
                total.value = total.value + parts[part * k.size("apart") + number]
            give(k, self.expression, total.value, at)
