"""Few rows that are very long: blocks go through pieces of them, and lay down what they kept; then that is merged.

The values at each position are of no use behind it: only what is reduced, and what is computed with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_llvm.elements.reducers import REDUCTIONS, Kept
from tract_llvm.fuse.steps import Fold
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.kernels.reduce import kept_types
from tract_cuda.kernels.rows import RowsPlan, RowsWriter
from tract_cuda.language.kernel import Kernel, Parameter


def kept_of(rows: RowsPlan) -> Iterator[tuple[str, ElementType]]:
    """What is laid down: a name and a type for each number that the reductions of the first pass keep."""
    for number in rows.passes[0].folds:
        step = rows.steps[number]
        assert isinstance(step, Fold), "passes list folds by number"
        for place, type_ in enumerate(kept_types(step.reducer, rows.steps[step.operand].result)):
            yield f"kept{number}.{place}", type_


@frozen
class PiecesPlan:
    """The first pass of a program, piece by piece. ``rows``: the program, whose threads share the piece of a row.

    The pieces of a row go along the second axis of the grid.
    """

    rows: RowsPlan

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "rows_pieces"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows.threads

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Those of the program but its results; ``piece``: vectors of a piece; ``kept``: where it is laid down."""
        later = {f"tensor{tensor}" for _, tensor in self.rows.results}
        kept = [Parameter(name, element) for name, element in kept_of(self.rows)]
        return (*(one for one in self.rows.parameters if one.name not in later), Parameter("piece"), *kept)

    def emit(self, k: Kernel) -> None:
        """Each block goes through its piece of its rows."""
        rows, (one,) = RowsWriter(self.rows, k), self.rows.passes
        spread, found = self.rows.spread, dict[int, Value]()
        rows.once(one.once, found)
        begin = k.block("y") * k.size("piece")
        stop = k.smaller(begin + k.size("piece"), k.size("count"))
        lanes = spread.lanes if spread.across else 1
        place = (k.block("y") * k.size("rows") + rows.number) * lanes
        for number, kept in rows.gone_through(one, found, begin + rows.place.part, stop).items():
            whole = rows.merged(number, kept)
            with k.when(rows.is_one & rows.place.part.equals(0)):
                for component, value in enumerate(whole):
                    memory = k.memory(f"kept{number}.{component}")
                    k.write(memory, place, k.convert(value, memory.element))


@frozen
class MergedPlan:
    """What the pieces of rows gave, merged, and what is computed with that.

    ``rows``: the program, spread across rows one by one: ``count`` is the number of pieces.
    """

    rows: RowsPlan

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "rows_merged"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.rows.threads

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Those of the program; ``kept``: what was laid down."""
        return (*self.rows.parameters, *(Parameter(name, element) for name, element in kept_of(self.rows)))

    def emit(self, k: Kernel) -> None:
        """Each thread merges some pieces of a row, then the threads of a row merge what they have."""
        rows, (one,) = RowsWriter(self.rows, k), self.rows.passes
        found: dict[int, Value] = {}
        rows.once(one.once, found)
        for number in one.folds:
            found[number] = rows.finished(number, rows.merged(number, self._kept(k, rows, number)))
        rows.finish(found)

    def _kept(self, k: Kernel, rows: RowsWriter, number: int) -> Kept:
        start = rows.start(number)
        kept, merge = [k.variable(one) for one in start], REDUCTIONS[rows.fold(number).reducer].merge
        row = k.select(rows.is_one, rows.number, k.size("rows") - 1)
        with k.loop("piece", k.size("count"), rows.place.part, self.rows.spread.parts) as piece:
            place = piece * k.size("rows") + row
            there = [k.memory(f"kept{number}.{n}")[place] for n in range(len(start))]
            more = tuple(k.convert(one, like.type) for one, like in zip(there, start, strict=True))
            for variable, value in zip(kept, merge(tuple(one.value for one in kept), more), strict=True):
                variable.value = value
        return tuple(one.value for one in kept)
