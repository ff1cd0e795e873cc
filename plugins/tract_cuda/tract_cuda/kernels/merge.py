"""Parts of sums, which other blocks summed, added up in order, with what is computed of each sum."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS = 128
AXES = 3
"""Pairs, rows and columns."""


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
        tensors = [("result", self.expression.result)]
        tensors += [(f"operand{number}", one) for number, one in enumerate(self.expression.inputs[1:])]
        found = [one for name, element in tensors for one in (Parameter(name, element), *sizes(f"{name}.", AXES))]
        return (Parameter("parts"), Parameter("apart"), *sizes("size", AXES), Parameter("sums", self.sums), *found)

    def emit(self, k: Kernel) -> None:
        """result[p, i, j] = expression(sum of parts[s, p, i, j] over s, operands[p, i, j], ...)"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("apart")):
            pair, row, column = k.spot(number, k.sizes("size", AXES))
            total, parts = k.variable(k.constant(0, self.sums)), k.memory("sums")
            with k.loop("part", k.size("parts")) as part:
                total.value = total.value + parts[part * k.size("apart") + number]
            names = [f"operand{one}" for one in range(len(self.expression.inputs) - 1)]

            def place(name: str) -> Value:
                steps = k.sizes(f"{name}.", AXES)
                return pair * steps[0] + row * steps[1] + column * steps[2]

            operands = [k.memory(name)[place(name)] for name in names]
            first = rounded(total.value, self.expression.inputs[0])
            k.memory("result")[place("result")] = self.expression.compute([first, *operands])
