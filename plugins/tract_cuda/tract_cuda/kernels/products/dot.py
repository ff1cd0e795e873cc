"""Products of matrices of any types and strides: one thread sums one element of the result."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.product import AXES, parameters_of
from tract_cuda.kernels.sums import give, multiply_add
from tract_cuda.language.kernel import Kernel, Parameter

THREADS = 128


@frozen
class DotPlan:
    """``left``, ``right``: the types of the factors; ``sums``: in which type products are summed.

    ``expression``: what is computed of each sum, rounded to the type of its first input, and of the operands.
    """

    left: ElementType
    right: ElementType
    sums: ElementType
    expression: Expression

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "dot"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The sizes of pairs, rows, columns and of the summed axis; each tensor, and its strides along its axes."""
        return parameters_of(self.left, self.right, self.expression)

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of left[p, i, d] * right[p, d, j] over d, operands[p, i, j], ...)"""
        pairs, rows, columns = k.sizes("size", AXES)
        number = k.block() * THREADS + k.thread()
        with k.when(number < pairs * rows * columns):
            column, row, pair = number % columns, number // columns % rows, number // columns // rows
            give(k, self.expression, self._sum(k, pair, row, column), (pair, row, column))

    def _sum(self, k: Kernel, pair: Value, row: Value, column: Value) -> Value:
        left, right = k.memory("left"), k.memory("right")
        a, b = k.sizes("left.", AXES), k.sizes("right.", AXES)
        total = k.variable(k.constant(0, self.sums))
        begin, start = pair * a[0] + row * a[1], pair * b[0] + column * b[2]
        with k.loop("depth", k.size("depth")) as d:
            x, y = (k.convert(one, self.sums) for one in (left[begin + d * a[2]], right[start + d * b[1]]))
            total.value = multiply_add(x, y, total.value)
        return total.value
