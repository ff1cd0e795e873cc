"""Element-wise kernels: for every position, an expression of the elements of the operands there."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.lanes import read_lanes, write_lanes
from tract_cuda.kernels.positions import THREADS, place
from tract_cuda.language.kernel import Kernel, Parameter, sizes


@frozen
class MapPlan:
    """One thread for ``lanes`` neighbouring positions, counted over ``rank`` loops; the last operand is the result.

    ``moves``: how each operand moves along the lanes, ``"stays"``, ``"next"`` to the next element, or ``"far"`` by a
    stride. What goes to the next one begins at multiples of the lanes. ``ragged``: whether the last thread may have
    fewer positions, where there is one loop.
    """

    expression: Expression
    rank: int
    moves: tuple[str, ...]
    lanes: int
    ragged: bool = False

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
        """``count``: of threads with work; ``length``: of positions; ``size``: of loops, counted in vectors.

        Each tensor, how far apart its elements are in two rounds of each loop, and, ``apart``, in two lanes.
        """
        found = [Parameter("count"), Parameter("length"), *sizes("size", self.rank)]
        for number, one in enumerate((*self.expression.inputs, self.expression.result)):
            found += [Parameter(f"tensor{number}", one), *sizes(f"stride{number}.", self.rank)]
            found.append(Parameter(f"apart{number}"))
        return tuple(found)

    def emit(self, k: Kernel) -> None:
        """result[i, j, ...] = expression(a[i, j, ...], b[i, j, ...], ...)"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("count")):
            if not self.ragged:
                self._vector(k, number)
                return
            with k.either(number * self.lanes <= k.size("length") - self.lanes) as (then, otherwise):
                with then:
                    self._vector(k, number)
                with otherwise, k.loop("rest", k.size("length"), number * self.lanes) as position:
                    self._compute(k, [position * k.size(f"apart{n}") for n in range(len(self.moves))], 0)

    def _vector(self, k: Kernel, number: Value) -> None:
        at = k.spot(number, k.sizes("size", self.rank))
        places = [place(k, f"stride{operand}", at) for operand in range(len(self.moves))]
        self._compute(k, places, self.lanes if self.lanes > 1 else 0)

    def _compute(self, k: Kernel, places: Sequence[Value], lanes: int) -> None:
        *operands, result = range(len(places))
        values = [read_lanes(k, one, self.moves[one], places[one], lanes) for one in operands]
        write_lanes(k, result, self.moves[result], places[result], self.expression.compute(values).splat(lanes))
