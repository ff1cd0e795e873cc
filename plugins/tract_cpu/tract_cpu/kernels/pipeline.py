"""Convolutions one after the other, row by row: what one computes is read by the next while it is in the cache.

The rows between two of them are in scratch memory, as many as windows of the next one reach, with the zeros around them
that these read. A task is a strip of rows of the last result: for each row, what windows read of the tensor before is
computed first, as far as it is not there yet from the row before. Where channels are summed alone, the rows that they
read are computed for the channels of a tile right before.
"""

from __future__ import annotations

from collections.abc import Callable

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Variable
from tract_llvm.language.types import U8
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.kernels.conv import ConvPlan, ConvWriter, Ring
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Signature, Size, Taken

_NEVER = -(1 << 40)
"""A row before all others."""


@frozen
class PipelinePlan:
    """``convs``: in order, each with two spatial axes; ``rings``: the rows between them."""

    convs: tuple[ConvPlan, ...]
    rings: tuple[Ring, ...]

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "convs"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        rows = map(Size, ("begin", "line", "row", "before", "after"))
        convs = tuple(one.declared(*ends) for one, *ends in self.ends())
        return Signature.of(Size("strips"), Each("convs", convs), Each.of("rows", len(self.rings), *rows))

    def ends(self) -> list[tuple[ConvPlan, Ring | None, Ring | None]]:
        """Each convolution, with the rows that it reads and writes where these are no tensors."""
        return list(zip(self.convs, (None, *self.rings), (*self.rings, None), strict=True))

    def emit(self, k: Kernel) -> None:
        """Task by task, a strip of rows of one result."""
        k.keep_addresses()
        pipeline = _Pipeline(self, k)
        with k.loop("task", k.end, k.begin) as task:
            pipeline.strip(task)


class _Pipeline:
    """The convolutions while they are written."""

    def __init__(self, plan: PipelinePlan, k: Kernel) -> None:
        self._plan, self._k = plan, k
        taken = plan.signature.taken(k)
        self._strips = taken.size("strips")
        convs = zip(plan.ends(), taken.each("convs"), strict=True)
        self._convs = [ConvWriter(one, k, given, *ends) for (one, *ends), given in convs]
        rows = zip(self._convs, plan.rings, taken.each("rows"), strict=False)
        self._rows = [_Rows(k, *one) for one in rows]

    def strip(self, task: Value) -> None:
        """Some rows of the last result."""
        batch, strip = task // self._strips, task % self._strips
        count, last = self._convs[-1].sizes[0], len(self._convs) - 1
        for rows in self._rows:
            rows.ready.value = self._k.index(_NEVER)
        with self._k.loop("row", count * (strip + 1) // self._strips, count * strip // self._strips) as row:
            self._row(last, batch, row)

    def _row(self, number: int, batch: Value, row: Value) -> None:
        """All channels of a row of one of the results."""
        conv, k = self._convs[number], self._k
        if number and conv.plan.depthwise and not self._convs[number - 1].plan.depthwise:
            self._beside(number, batch, row)
            return
        if number:
            self._ahead(number, batch, row)
        with k.loop("group", conv.groups) as group, k.loop("run", conv.runs) as run:
            self._run(number, batch, row, group, run)

    def _run(self, number: int, batch: Value, row: Value, group: Value, run: Value) -> None:
        """The channels of a tile, with the zeros around them where it is not the last result."""
        conv = self._convs[number]
        conv.row(batch, group, run, [row])
        if number < len(self._rows):
            self._rows[number].sides(row, *conv.channels_of(group, run))

    def _ahead(self, number: int, batch: Value, row: Value) -> None:
        """The rows of the tensor before that are read for a row and not there yet."""
        before = self._rows[number - 1]
        start, stop = before.missing(row)
        with self._k.loop(f"ahead{number}", stop, start) as one:
            blocks = self._k.index(0), self._convs[number - 1].all_blocks
            before.zeros_or(one, blocks, lambda: self._row(number - 1, batch, one))
        before.ready.value = stop

    def _beside(self, number: int, batch: Value, row: Value) -> None:
        """The same for a convolution that sums each channel alone, and the row itself: channels of a tile by tile."""
        k, source, before = self._k, self._convs[number - 1], self._rows[number - 1]
        start, stop = before.missing(row)
        if number > 1:
            first = k.select(start < 0, k.index(0), start)
            with k.loop("early", k.smaller(stop, source.sizes[0]), first) as one:
                self._ahead(number - 1, batch, one)
        with k.loop("group", source.groups) as group, k.loop("run", source.runs) as run:
            blocks = source.channels_of(group, run)
            with k.loop("above", stop, start) as one:
                before.zeros_or(one, blocks, lambda: self._run(number - 1, batch, one, group, run))
            with k.loop("block", blocks[0] + blocks[1], blocks[0]) as block:
                self._run(number, batch, row, k.index(0), block)
        before.ready.value = stop


class _Rows:
    """Rows between two convolutions. ``ready``: up to before which row they were computed."""

    ready: Variable

    def __init__(self, k: Kernel, conv: ConvWriter, ring: Ring, taken: Taken) -> None:
        self._k, self._ring, self._lanes = k, ring, conv.plan.lanes
        self._element, self._height = conv.plan.expression.result, conv.sizes[0]
        self._memory = k.scratch(U8).at(taken.size("begin")).of(self._element)
        self._line, self._row = taken.size("line"), taken.size("row")
        self._before, self._after = taken.size("before"), taken.size("after")
        self.ready = k.variable(k.index(_NEVER))

    def missing(self, row: Value) -> tuple[Value, Value]:
        """The rows to compute for a row of the next result: the first one, and the one behind the last."""
        ready, first = self.ready.value, self._ring.first(row)
        start = self._k.select(ready < first, first, ready)
        return start, first + ((self._ring.window - 1) * self._ring.dilation + 1)

    def zeros_or(self, row: Value, blocks: tuple[Value, Value], compute: Callable[[], None]) -> None:
        """Compute a row that there is; zeros for any other. ``blocks``: the first of its channels, and how many."""
        with self._k.either((row >= 0) & (row < self._height)) as (inside, outside):
            with inside:
                compute()
            with outside:
                first, count = blocks
                self._fill(self._at(row, first), count * self._line)

    def sides(self, row: Value, first: Value, count: Value) -> None:
        """The zeros on both sides of some blocks of a row."""
        with self._k.loop("side", count) as block:
            line = self._at(row, first + block)
            self._fill(line, self._before)
            self._fill(line.at(self._line - self._after), self._after)

    def _at(self, row: Value, block: Value) -> Buffer:
        return self._memory.at(self._ring.place(row) * self._row + block * self._line)

    def _fill(self, line: Buffer, size: Value) -> None:
        zero = self._k.constant(0, self._element.computed, self._lanes)
        with self._k.loop("zero", size, step=self._lanes) as place:
            line.put(place, zero)
