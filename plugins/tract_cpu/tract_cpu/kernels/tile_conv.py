"""Direct convolutions in tiles: 16 positions along a row, times 16 output channels, at once.

The data lies in blocks of as many channels as a row of a tile has, 64 bytes, so that the positions of a row are the
rows of a tile wherever a window begins. The weights are packed as for other convolutions whose products are summed in
groups, in whole blocks. Two tiles of each factor are multiplied into four tiles of sums, which go through memory to the
expression behind; what the last tile has beyond the row is never written.
"""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.tiles import ROWS, STEPS, tiles_of
from tract_llvm.language.values import Value

from tract_cpu.kernels.conv import ConvPlan, ConvWriter
from tract_cpu.kernels.dots import GROUPED
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Taken
from tract_cpu.kernels.tiles import LEFT, RIGHT, TALL


class TileConvPlan(ConvPlan):
    """Its fields are those of `ConvPlan`; ``block`` are the channels of a row of a tile."""

    def emit(self, k: Kernel) -> None:
        """As of `ConvPlan`."""
        k.keep_addresses()
        writer = _TiledWriter(self, k, self.signature.taken(k))
        with writer.registers.configured():
            writer.tasks()


class _TiledWriter(ConvWriter):
    """The convolution while it is written."""

    def __init__(self, plan: TileConvPlan, k: Kernel, taken: Taken) -> None:
        super().__init__(plan, k, taken)
        self.registers = tiles_of(k)
        self._depth = (self.channels + (plan.block - 1)) // plan.block
        self._width = plan.vectors * plan.lanes
        self._laid = k.own(plan.expression.inputs[0].computed, TALL * ROWS * self._width)

    def row(self, batch: Value, group: Value, run: Value, outer: Sequence[Value]) -> None:
        """One row of the output, for a run of the channels."""
        k, plan = self.k, self.plan
        source = self.input.at(batch * self.batch + group * self.group)
        for position, move in zip(outer, self.moves, strict=False):
            source = source.at(position * move)
        weights = self.weights.at((group * self.runs + run) * self.weights_run)
        block = run * plan.vectors
        places = [one.at(batch, group * self.blocks + block, outer) for one in self.targets]
        with k.loop("columns", self.sizes[-1], step=TALL * ROWS) as column:
            height = k.smaller(self.sizes[-1] - column, TALL * ROWS)
            with k.either(height > ROWS) as (tall, low):
                for many, branch in enumerate((low, tall), start=1):
                    with branch:
                        self._multiply(many, source.at(column * self.moves[-1]), weights)
            for v in range(plan.vectors):
                with k.when(block + v < self.blocks), k.loop("column", height) as one:
                    rows = [place.at(target.block * v) for target, place in zip(self.targets, places, strict=True)]
                    total = self._laid.vector(one * self._width + v * plan.lanes, plan.lanes)
                    self.write_vectors([total], rows, column + one)

    def _multiply(self, tall: int, source: Buffer, weights: Buffer) -> None:
        """Sum the products of so many tiles of positions with a run of channels, and lay the sums down."""
        k, tiles, plan = self.k, self.registers, self.plan
        assert plan.grouping is not None  # there are no other tiles
        dot, apart = plan.grouping.dot, plan.column_step * plan.element.bytes // GROUPED.bytes
        places = [(one, v, one * plan.vectors + v) for one in range(tall) for v in range(plan.vectors)]
        for *_, sums in places:
            tiles.clear(sums)
        line = k.variable(k.index(0))

        def add(at: Buffer) -> None:
            for v in range(plan.vectors):
                tiles.load(RIGHT + v, weights.at(line.value + v * plan.lanes), self._width)
            for one in range(tall):
                tiles.load(LEFT + one, at.at(one * ROWS * plan.column_step), apart)
            for one, v, sums in places:
                tiles.add_products(dot, sums, LEFT + one, RIGHT + v)
            line.value = line.value + STEPS * self._width

        with k.loop("block", self._depth) as block:
            start = source.at(block * self.input_block)
            if plan.moves:
                self.over_window(start, 0, plan.spatial, add)
            else:
                add(start)
        for one, v, sums in places:
            tiles.store(sums, self._laid.at(one * ROWS * self._width + v * plan.lanes), self._width)
