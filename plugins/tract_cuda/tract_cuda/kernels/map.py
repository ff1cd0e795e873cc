"""Element-wise kernels: for every position, an expression of the elements of the operands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS: Final = 256


@frozen
class MapPlan:
    """One thread for ``lanes`` neighbouring positions, counted over ``rank`` axes; the last operand is the result.

    ``moves``: how each operand moves along the innermost axis, ``"stays"``, ``"next"`` to the next element, or
    ``"far"`` by a stride. More than one lane wants an innermost size, strides and addresses that are multiples of
    them, and no operand that is far.
    """

    expression: Expression
    rank: int
    moves: tuple[str, ...]
    lanes: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "map"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``count``: of threads with work; ``size``: of axes; each tensor, and its strides along all axes."""
        types = (*self.expression.inputs, self.expression.result)
        tensors = [(Parameter(f"tensor{n}", one), *sizes(f"stride{n}.", self.rank)) for n, one in enumerate(types)]
        return (Parameter("count"), *sizes("size", self.rank), *(one for group in tensors for one in group))

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = expression(a[i, j, ...], b[i, j, ...], ...)"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            spot = self._spot(k, number)
            places = [self._place(k, operand, spot) for operand in range(len(self.moves))]
            operands = [self._read(k, operand, places[operand]) for operand in range(len(self.moves) - 1)]
            result = self.expression.compute(operands).splat(self._vector)
            k.write(k.memory(f"tensor{len(self.moves) - 1}"), places[-1], result)

    @property
    def _vector(self) -> int:
        return self.lanes if self.lanes > 1 else 0

    def _spot(self, k: Kernel, number: Value) -> list[Value]:
        """The position along each axis of the first element of a thread."""
        axes, found = k.sizes("size", self.rank), list[Value]()
        for axis in reversed(range(self.rank)):
            size = axes[axis] // self.lanes if axis == self.rank - 1 else axes[axis]
            here = number if axis == 0 else number % size
            found.append(here * self.lanes if axis == self.rank - 1 else here)
            number = number // size if axis else number
        return found[::-1]

    def _place(self, k: Kernel, operand: int, spot: Sequence[Value]) -> Value:
        strides = k.sizes(f"stride{operand}.", self.rank)
        place = k.index(0)
        for axis, (position, stride) in enumerate(zip(spot, strides, strict=True)):
            if axis < self.rank - 1 or self.moves[operand] == "far":
                place = place + position * stride
            elif self.moves[operand] == "next":
                place = place + position
        return place

    def _read(self, k: Kernel, operand: int, place: Value) -> Value:
        memory = k.memory(f"tensor{operand}")
        if self.moves[operand] == "stays":
            return memory[place].splat(self._vector)
        return k.read(memory, place, self._vector) if self._vector else memory[place]
