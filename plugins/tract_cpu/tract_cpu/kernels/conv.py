"""Direct convolutions: tiles of a row of the output, for some blocks of channels, are summed in registers.

Channels lie in blocks: of ``lanes`` of them, those at one position are neighbours in memory, so that a vector holds one
position of a block. The output is written so; the input may be, or its channels may lie in any other way. Around the
input there are as many zeros as windows reach beyond it, so that kernels know of no borders.

The weights are packed in the order in which they are read: for each group, and each run of output channels that a tile
has, block by block of input channels, over all positions of the window, channel by channel. Where products are summed
in groups (`tract_cpu.kernels.dots`), these are neighbouring channels, and what sums start at stands before the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_core.frozen import frozen
from tract_cpu.kernels.dots import GROUPED, Grouping
from tract_cpu.kernels.expressions import Expression, rounded
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.language.buffers import Buffer
from tract_cpu.language.types import ElementType
from tract_cpu.language.values import Value


@frozen
class ConvPlan:
    """How a convolution is cut.

    ``spatial``: how many axes windows move along. ``columns``, ``vectors``: of a tile, along the last of these axes,
    and of ``lanes`` output channels each. ``rest``: how many columns the tiles have, the widest one first, that compute
    what whole tiles leave over of a row; each is code of its own, so there are those that some row needs. ``block``:
    how many input channels follow each other ``channel_step`` elements apart, where that is known now; ``column_step``:
    elements from what one column reads to what the next one does. ``depthwise``: whether each channel is summed alone,
    and a tile has one vector of them. ``expression``: what becomes of a sum, which is its first operand;
    ``along_channels``: of each further operand, whether it has a number for every channel of a block, or one for all.
    ``grouping``: how products are summed in groups of channels, which lie beside each other then.
    """

    spatial: int
    columns: int
    rest: tuple[int, ...]
    vectors: int
    lanes: int
    block: int
    channel_step: int | None
    column_step: int
    depthwise: bool
    element: ElementType
    weights: ElementType
    expression: Expression
    along_channels: tuple[bool, ...]
    grouping: Grouping | None = None

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "depthwise" if self.depthwise else "conv"

    def text(self) -> str:
        """All that it says."""
        tile = (self.spatial, self.columns, self.rest, self.vectors, self.lanes)
        read = (self.block, self.channel_step, self.column_step)
        types = f"{self.element.name} {self.weights.name} {self.expression.text()}"
        return f"{self.name} {tile} {read} {types} {self.along_channels} {self.grouping and self.grouping.text()}"

    def emit(self, k: Kernel) -> None:
        """output[n, o, p] = expression(sum of weights[o, i, t] * input[n, i, stride * p + dilation * t], ...)

        Task by task: one row of the output, for the channels of a tile. An argument says for how many tiles of channels
        that is done before the next row.
        """
        conv = _Conv(self, k)
        with k.loop("task", k.end, k.begin) as task:
            conv.row(task)


class _Conv:
    """The convolution while it is written."""

    def __init__(self, plan: ConvPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        axes = range(plan.spatial)
        self.groups, self.blocks, self.runs, self.near = k.size(), k.size(), k.size(), k.size()
        self.far = self.runs // self.near
        self.channels = k.size()
        self.sizes = [k.size() for _ in axes]
        self.window = [k.size() for _ in axes]
        self.input = k.memory(plan.element)
        self.batch, self.group, self.input_block = k.size(), k.size(), k.size()
        step = k.size()
        self.channel_step = step if plan.channel_step is None else k.index(plan.channel_step)
        self.moves = [k.size() for _ in axes]
        self.taps = [k.size() for _ in axes]
        self.weights, self.weights_run = k.memory(plan.weights), k.size()
        self.targets = [_Target(k, one, plan.spatial) for one in (*plan.expression.inputs[1:], plan.expression.result)]

    def row(self, task: Value) -> None:
        """One row of the output, for the channels of a tile."""
        k, plan = self.k, self.plan
        outer: list[Value] = []
        run, task = task % self.near, task // self.near
        for size in reversed(self.sizes[:-1]):
            outer.insert(0, task % size)
            task = task // size
        run, task = task % self.far * self.near + run, task // self.far
        group, batch = task % self.groups, task // self.groups
        source = self.input.at(batch * self.batch + group * self.group)
        if plan.depthwise:
            source = source.at(run * self.input_block)
        for position, move in zip(outer, self.moves, strict=False):
            source = source.at(position * move)
        weights = self.weights.at((group * self.runs + run) * self.weights_run)
        block = run * plan.vectors
        places = [one.at(batch, group * self.blocks + block, outer) for one in self.targets]
        done: Value = k.index(0)
        for columns in (plan.columns, *plan.rest):
            size = self.sizes[-1]
            limit = size - (size - done) % columns
            with k.loop(f"columns{columns}", limit, done, columns) as column:
                sums = self._sums(columns, source.at(column * self.moves[-1]), weights)
                self._write(sums, places, column, block)
            done = limit

    def _sums(self, columns: int, source: Buffer, weights: Buffer) -> list[list[Value]]:
        """The sums of some columns, for each vector of channels."""
        k, plan = self.k, self.plan
        kind = plan.expression.inputs[0].computed
        width, grouping = plan.vectors * plan.lanes, plan.grouping
        start = [k.constant(0, kind, plan.lanes)] * plan.vectors
        if grouping is not None and grouping.flips:
            start = [weights.vector(v * plan.lanes, plan.lanes) for v in range(plan.vectors)]
            weights = weights.at(width)
        sums = [[k.variable(one) for one in start] for _ in range(columns)]
        place = k.variable(k.index(0))

        def add(at: Buffer) -> None:
            places = [place.value + v * plan.lanes for v in range(plan.vectors)]
            vectors = [weights.vector(one, plan.lanes) for one in places]
            if grouping is None:
                vectors = [k.convert(one, kind) for one in vectors]
            for column, line in enumerate(sums):
                where = column * plan.column_step
                if grouping is not None:
                    group = grouping.flipped(at.together(where, GROUPED).splat(plan.lanes))
                    for total, vector in zip(line, vectors, strict=True):
                        total.value = k.dots(grouping.dot, group, vector, total.value)
                    continue
                factor = at.vector(where, plan.lanes) if plan.depthwise else at[where].splat(plan.lanes)
                for total, vector in zip(line, vectors, strict=True):
                    total.value = k.convert(factor, kind).times_plus(vector, total.value)
            place.value = place.value + width

        if plan.depthwise:
            self._over_window(source, 0, add)
        else:
            with k.loop("block", self.channels, step=plan.block) as first:
                count = k.smaller(self.channels - first, plan.block)
                start = source.at(first // plan.block * self.input_block)

                def over_channels(at: Buffer) -> None:
                    if plan.block == plan.lanes:  # no processor foresees that the next block lies elsewhere
                        following = at.at(self.input_block)
                        for column in range(columns):
                            following.prefetch(column * plan.column_step)
                    with k.loop("channel", count, step=1 if grouping is None else grouping.size) as channel:
                        add(at.at(channel * self.channel_step))

                self._over_window(start, 0, over_channels)
        return [[total.value for total in line] for line in sums]

    def _over_window(self, at: Buffer, axis: int, visit: Callable[[Buffer], None]) -> None:
        if axis == self.plan.spatial:
            visit(at)
            return
        with self.k.loop(f"tap{axis}", self.window[axis]) as tap:
            self._over_window(at.at(tap * self.taps[axis]), axis + 1, visit)

    def _write(self, sums: list[list[Value]], places: Sequence[Buffer], column: Value, block: Value) -> None:
        """Send the sums through the expression, and write those of channels that there are."""
        k, plan = self.k, self.plan
        for v in range(plan.vectors):
            with k.when(block + v < self.blocks):
                at = [place.at(one.block * v) for one, place in zip(self.targets, places, strict=True)]
                for number, line in enumerate(sums):
                    where = column + number
                    operands = [rounded(line[v], plan.expression.inputs[0])]
                    further = zip(self.targets[:-1], at[:-1], plan.along_channels, strict=True)
                    for one, source, along in further:
                        there = source.at(where * one.moves[-1])
                        operands.append(there.vector(0, plan.lanes) if along else there[0].splat(plan.lanes))
                    at[-1].put(where * self.targets[-1].moves[-1], plan.expression.compute(operands))


class _Target:
    """The result, or a further operand of the expression: where its elements are."""

    def __init__(self, k: Kernel, element: ElementType, spatial: int) -> None:
        self.memory = k.memory(element)
        self.batch, self.block = k.size(), k.size()
        self.moves = [k.size() for _ in range(spatial)]

    def at(self, batch: Value, block: Value, outer: Sequence[Value]) -> Buffer:
        """From the begin of a row on."""
        found = self.memory.at(batch * self.batch + block * self.block)
        for position, move in zip(outer, self.moves, strict=False):
            found = found.at(position * move)
        return found
