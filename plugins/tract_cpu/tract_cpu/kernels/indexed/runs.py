"""Rows that are multiplied with a matrix of their own choice: those that chose the same one are multiplied together.

First the rows are put in order, by the matrices that they chose, and cut into runs of rows of one matrix. A task is
then a run and a panel of columns: so a panel is read, or unpacked, once for all rows of a run, whoever does which task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import INDEX, U64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size, Taken

RUN: Final = (Size("begin"), Size("end"), Size("matrix"))
"""What is told of a run, in integers side by side: its first row, the one behind its last one, and its matrix."""

RUNS: Final = (Memory("order", INDEX), Memory("runs", INDEX), Size("sharing"))
"""What products are told: the numbers of rows, in order; the runs; and how many rows have their left factors in common.
"""


@frozen
class RunsPlan:
    """``index``: the type of the numbers of matrices that rows have."""

    index: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "runs"

    @property
    def signature(self) -> Signature:
        """What it is called with. ``most``: rows of a run; ``room``: for how many runs there is memory."""
        sizes = map(Size, ("rows", "matrices", "most", "room"))
        made = (Memory(name, INDEX) for name in ("order", "runs", "counts", "status"))
        return Signature.of(*sizes, Memory("numbers", self.index), *made)

    def emit(self, k: Kernel) -> None:
        """Rows in the order of their matrices, and among those of one as they were; runs behind the last one are empty.

        One task. Refuses for a number outside, which is in no run; negative ones count from the end.
        """
        taken = self.signature.taken(k)
        counts = taken.memory("counts")
        with k.loop("task", k.end, k.begin):
            with k.loop("matrix", taken.size("matrices")) as matrix:
                counts[matrix] = k.index(0)
            for _, number in self._rows(k, taken, "count"):
                counts[number] = counts[number] + 1
            self._cut(k, taken, counts)
            for row, number in self._rows(k, taken, "order"):
                place = counts[number]
                taken.memory("order")[place] = row
                counts[number] = place + 1

    def _rows(self, k: Kernel, taken: Taken, name: str) -> Iterator[tuple[Value, Value]]:
        """Loops over the rows whose numbers are inside, with these."""
        matrices, numbers = taken.size("matrices"), taken.memory("numbers")
        with k.loop(name, taken.size("rows")) as row:
            number = k.convert(numbers[row], INDEX)
            number = k.select(number < 0, number + matrices, number)
            with k.either(number.bits(U64) < matrices.bits(U64)) as (inside, outside):
                with inside:
                    yield row, number
                with outside:
                    taken.memory("status")[0] = k.index(1)

    def _cut(self, k: Kernel, taken: Taken, counts: Buffer) -> None:
        """Runs of the rows that were counted. Counts become the places of the first rows."""
        most, runs = taken.size("most"), taken.memory("runs")
        first, made = k.variable(k.index(0)), k.variable(k.index(0))

        def put(run: Value, *said: Value) -> None:
            for place, one in enumerate(said):
                runs[run * len(RUN) + place] = one

        with k.loop("matrix", taken.size("matrices")) as matrix:
            begin, end = first.value, first.value + counts[matrix]
            counts[matrix] = begin
            with k.loop("run", end, begin, most) as row:
                put(made.value, row, k.smaller(row + most, end), matrix)
                made.value = made.value + 1
            first.value = end
        with k.loop("empty", taken.size("room"), made.value) as run:
            put(run, *[k.index(0)] * len(RUN))
