"""Products of rows with matrices of their own choice, run by run."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.indexed.runs import RUN, RUNS
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.matmul import Factors, MatMulPlan, ProductWriter, TilePlace
from tract_cpu.kernels.signature import Signature


@frozen
class IndexedMatMulPlan(MatMulPlan):
    """A product of rows with the matrices that they chose, which lie one behind the other; as of `MatMulPlan`."""

    @property
    def signature(self) -> Signature:
        """In front, what is told of the rows."""
        return Signature.of(*RUNS, *self.items())

    def emit(self, k: Kernel) -> None:
        """result[i, j] = sum over d of left[i // sharing, d] * right[matrix of i, d, j]"""
        product = IndexedWriter(self, k)
        with k.loop("task", k.end, k.begin) as task:
            product.task(task)


class IndexedWriter(ProductWriter):
    """The product while it is written. Rows of a tile are places in the order."""

    def __init__(self, plan: MatMulPlan, k: Kernel) -> None:
        super().__init__(plan, k)
        taken = plan.signature.taken(k)
        self._order, self._runs, self._sharing = taken.memory("order"), taken.memory("runs"), taken.size("sharing")

    def task(self, task: Value) -> None:
        """A run, and a panel of columns."""
        k, columns = self.k, self.plan.tile.columns
        run, first = task // self._panels, task % self._panels * columns
        begin, end, matrix = (self._runs[run * len(RUN) + place] for place in range(len(RUN)))
        with k.when(begin < end):
            panel = self._right.at((matrix * self._panels * columns + first) * self.lines)
            self.run(end - begin, TilePlace(begin, first, self._left, panel, (), self._result))

    def run(self, rows: Value, at: TilePlace) -> None:
        """So many rows, with a panel."""
        begin = self.k.index(0)
        for height in (self.plan.tile.rows, *self.plan.rests):
            end = rows - (rows - begin) % height
            with self.k.loop(f"tile{height}", end, begin, height) as row:
                self.end(self._totals(height, self.factors_of(height, at, row), at.right, None), at.below(row))
            begin = end

    def factors_of(self, height: int, at: TilePlace, first: Value) -> Factors:
        """Those of so many rows, which are at places in the order; where they begin is found once, before all steps."""
        places = [self.source_of(at.row + first + row) * self.left_row for row in range(height)]
        rows = [self._left.at(place) for place in places]

        def one(row: Value | int, step: Value) -> Value:
            assert isinstance(row, int)  # rows of a tile are written out
            return self.factor(rows[row], step)

        def pairs(height: int, step: Value) -> list[Value]:
            raise NotImplementedError("rows of these products are not multiplied in squares")

        return Factors(one, pairs)

    def source_of(self, place: Value) -> Value:
        """The row of the left matrix that a place in the order has."""
        return self._order[place] // self._sharing

    def write_row(self, line: Sequence[Value], row: Value, at: TilePlace, masks: Sequence[Value | None]) -> None:
        """As of every product, where the row is that is at a place in the order."""
        super().write_row(line, self._order[row], at, masks)
