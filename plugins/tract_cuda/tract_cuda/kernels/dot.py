"""Products of matrices of any types and strides: one thread sums one element of the result."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 128
AXES = 3
"""Pairs, rows and columns; factors have the summed axis in the place of that which they lack."""


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
        operands = self.expression.inputs[1:]
        tensors = [("left", self.left), ("right", self.right), ("result", self.expression.result)]
        tensors += [(f"operand{number}", one) for number, one in enumerate(operands)]
        found = [(Parameter(name, element), *sizes(f"{name}.", AXES)) for name, element in tensors]
        return (*sizes("size", AXES), Parameter("depth"), *(one for group in found for one in group))

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of left[p, i, d] * right[p, d, j] over d, operands[p, i, j], ...)"""
        pairs, rows, columns = k.sizes("size", AXES)
        number = k.block() * THREADS + k.thread()
        with k.when(number < pairs * rows * columns):
            column, row, pair = number % columns, number // columns % rows, number // columns // rows
            total = self._sum(k, pair, row, column)
            spot = (pair, row, column)
            operands = [
                k.memory(name)[_place(k, name, spot)]
                for name in (f"operand{n}" for n in range(len(self.expression.inputs) - 1))
            ]
            sum_of = rounded(total, self.expression.inputs[0])
            k.memory("result")[_place(k, "result", spot)] = self.expression.compute([sum_of, *operands])

    def _sum(self, k: Kernel, pair: Value, row: Value, column: Value) -> Value:
        left, right = k.memory("left"), k.memory("right")
        a, b = k.sizes("left.", AXES), k.sizes("right.", AXES)
        total = k.variable(k.constant(0, self.sums))
        begin, start = pair * a[0] + row * a[1], pair * b[0] + column * b[2]
        with k.loop("depth", k.size("depth")) as d:
            x, y = (k.convert(one, self.sums) for one in (left[begin + d * a[2]], right[start + d * b[1]]))
            total.value = x.times_plus(y, total.value) if self.sums.kind == "f" else x * y + total.value
        return total.value


def _place(k: Kernel, name: str, spot: Sequence[Value]) -> Value:
    pair, row, column = (one * stride for one, stride in zip(spot, k.sizes(f"{name}.", AXES), strict=True))
    return pair + row + column
