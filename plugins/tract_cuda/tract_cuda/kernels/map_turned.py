"""Element-wise kernels with operands that lie side by side along another axis than the result: through shared memory.

A block computes a square. It reads such operands with neighbouring threads along the axis on which these lie side by
side, and lays them down; then it computes with neighbouring threads along that of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.positions import place
from tract_cuda.language.kernel import Kernel, Parameter, sizes

SIDE: Final = 32
"""Positions of a square along each of its axes."""

_AT_ONCE: Final = 8
"""How many lines of it the threads of a block have at once."""

_WORD: Final = 4
"""Bytes of a bank of shared memory."""


def line_of(element: ElementType) -> int:
    """Elements from one line to the next in shared memory, so that threads which read a column read all banks."""
    return SIDE + max(1, _WORD // element.bytes)


@frozen
class TurnedPlan:
    """``turned``: for each operand, whether it lies side by side along the other axis; the last one is the result.

    ``rank``: how many loops there are around a square.
    """

    expression: Expression
    turned: tuple[bool, ...]
    rank: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "turned"

    @property
    def threads(self) -> int:
        """Of a block."""
        return SIDE * _AT_ONCE

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``size``: of the loops around; ``lines``, ``columns``: of the axis of what is turned, and of the other.

        Each tensor, and how far apart its elements are along all of these.
        """
        found = [*sizes("size", self.rank), Parameter("lines"), Parameter("columns")]
        for number, one in enumerate((*self.expression.inputs, self.expression.result)):
            found += [Parameter(f"tensor{number}", one), *sizes(f"stride{number}.", self.rank)]
            found += [Parameter(f"line{number}"), Parameter(f"column{number}")]
        return tuple(found)

    def emit(self, k: Kernel) -> None:
        """A square: first what is turned is laid down, then all is computed."""
        lines, columns = ((k.size(name) + (SIDE - 1)) >> 5 for name in ("lines", "columns"))
        rest, column = k.divided(k.block(), columns)
        around, line = k.divided(rest, lines)
        at = k.spot(around, k.sizes("size", self.rank))
        begins = [place(k, f"stride{operand}", at) for operand in range(len(self.turned))]
        square = _Square(k, line * SIDE, column * SIDE)
        held: dict[int, Buffer] = {}
        for operand, (turned, element) in enumerate(zip(self.turned[:-1], self.expression.inputs, strict=True)):
            if turned:
                held[operand] = k.shared(element, SIDE * line_of(element))
                square.lay_down(operand, begins[operand], held[operand])
        k.barrier()
        square.compute(self.expression, begins, held)


class _Square:
    """A square of positions, and this thread in it: ``near`` along the axis in which neighbours go, ``far`` the other.

    ``line``, ``column``: where it begins.
    """

    def __init__(self, k: Kernel, line: Value, column: Value) -> None:
        self.k, self.line, self.column = k, line, column
        self.near, self.far = k.thread() & (SIDE - 1), k.thread() >> 5

    def lay_down(self, operand: int, begin: Value, memory: Buffer) -> None:
        """Read the square of an operand, neighbours along its lines, and write it to shared memory."""
        k, source = self.k, self.k.memory(f"tensor{operand}")
        line = self.line + self.near
        for first in range(0, SIDE, _AT_ONCE):
            there = self.far + first
            column = self.column + there
            with k.when((line < k.size("lines")) & (column < k.size("columns"))):
                memory[there * line_of(memory.element) + self.near] = source[self._place(operand, begin, line, column)]

    def compute(self, expression: Expression, begins: Sequence[Value], held: Mapping[int, Buffer]) -> None:
        """Compute the square, neighbours along the columns."""
        k, column, result = self.k, self.column + self.near, len(begins) - 1
        for first in range(0, SIDE, _AT_ONCE):
            there = self.far + first
            line = self.line + there
            with k.when((line < k.size("lines")) & (column < k.size("columns"))):
                places = [self._place(operand, begin, line, column) for operand, begin in enumerate(begins)]
                values = [
                    held[operand][self.near * line_of(held[operand].element) + there]
                    if operand in held
                    else k.memory(f"tensor{operand}")[at]
                    for operand, at in enumerate(places[:-1])
                ]
                k.memory(f"tensor{result}")[places[result]] = expression.compute(values)

    def _place(self, operand: int, begin: Value, line: Value, column: Value) -> Value:
        return begin + line * self.k.size(f"line{operand}") + column * self.k.size(f"column{operand}")
