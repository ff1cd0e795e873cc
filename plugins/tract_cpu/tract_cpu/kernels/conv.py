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
from contextlib import nullcontext
from functools import reduce
from itertools import product
from typing import NamedTuple

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Variable
from tract_llvm.language.types import U8, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.caches import CACHE_LINE
from tract_cpu.kernels.dots import GROUPED, DotGrouping, pairs_for
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Item, Memory, Signature, Size, Sizes, Taken
from tract_cpu.kernels.squares import LANES, TOGETHER, SquareSums, interleaved
from tract_cpu.kernels.sums import plus_products, steps_at_once
from tract_cpu.kernels.tasks import each_task


class Rest(NamedTuple):
    """A tile of few ``columns``, for so many ``runs`` of channels at once that the processor need not wait for sums."""

    columns: int
    runs: int = 1


@frozen
class ConvPlan:
    """How a convolution is cut.

    ``spatial``: how many axes windows move along. ``columns``, ``vectors``: of a tile, along the last of these axes,
    and of ``lanes`` output channels each. ``rest``: the tiles, the widest one first, for what whole tiles leave over of
    a row; each is code of its own, so there are those that some row needs. ``block``: how many input channels follow
    each other ``channel_step`` elements apart, where that is known now; ``column_step``: elements from what one column
    reads to what the next one does. ``depthwise``: whether each channel is summed alone, and a tile has one vector of
    them; then ``taps`` says how many positions windows have along the last axis, and how many elements these are apart.
    ``expression``: what becomes of a sum, which is its first operand; ``along_channels``: of each further operand,
    whether it has a number for every channel of a block, or one for all; ``steps``: of each of them and of the result,
    the elements from one column to the next, where that is known now.
    ``grouping``: how products are summed in groups of channels, which lie beside each other then.
    ``moves``: whether windows are more than one element. ``element``, ``weights``: the types of the factors.
    ``whole``: whether all blocks of input channels surely have as many as the first one. ``squares``: whether two
    groups are summed at once, for two columns and two channels at a time: of one block, or else of two.
    """

    spatial: int
    columns: int
    rest: tuple[Rest, ...]
    vectors: int
    lanes: int
    block: int
    channel_step: int | None
    column_step: int
    depthwise: bool
    taps: tuple[int, int]
    element: ElementType
    weights: ElementType
    expression: Expression
    along_channels: tuple[bool, ...]
    steps: tuple[int | None, ...]
    grouping: DotGrouping | None = None
    moves: bool = True
    whole: bool = False
    squares: bool = False

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "depthwise" if self.depthwise else "conv"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature(self.declared())

    def declared(self, above: Ring | None = None, below: Ring | None = None) -> tuple[Item, ...]:
        """Its arguments; offsets in bytes instead of addresses, where it reads or writes rows in scratch memory."""
        axes = self.spatial
        further = tuple(ConvTarget.declared(one, axes) for one in self.expression.inputs[1:])
        return (
            *map(Size, ("groups", "blocks", "runs", "near", "channels")),
            Sizes("sizes", axes),
            Sizes("window", axes),
            _declared("input", self.element, above),
            *map(Size, ("batch", "group", "input_block", "channel_step")),
            Sizes("moves", axes),
            Sizes("taps", axes),
            Memory("weights", self.weights),
            Size("weights_run"),
            Each("targets", (*further, ConvTarget.declared(self.expression.result, axes, below))),
        )

    def emit(self, k: Kernel) -> None:
        """output[n, o, p] = expression(sum of weights[o, i, t] * input[n, i, stride * p + dilation * t], ...)

        Task by task: one row of the output, for the channels of a tile. An argument says for how many tiles of channels
        that is done before the next row.
        """
        k.keep_addresses()
        ConvWriter(self, k, self.signature.taken(k)).tasks()


@frozen
class Ring:
    """Rows in scratch memory, of which the last ones are there: ``rows`` of them, a power of two.

    What reads them has windows of ``window`` rows, ``dilation`` apart, the first of which begins ``before`` rows before
    the first one there is, and each further one ``stride`` rows behind.
    """

    rows: int
    window: int
    stride: int
    dilation: int
    before: int

    def place(self, row: Value) -> Value:
        """Where a row is; it may be one of those before the first one there is."""
        return row & (self.rows - 1)

    def first(self, position: Value) -> Value:
        """The first row that is read for a row of the result."""
        return position * self.stride - self.before


class ConvWriter:
    """The convolution while it is written.

    ``above``, ``below``: the rows in scratch memory that it reads and writes, where these are no tensors in memory of
    their own. Then there are two spatial axes, and arguments are offsets in bytes instead of addresses.
    """

    def __init__(
        self, plan: ConvPlan, k: Kernel, taken: Taken, above: Ring | None = None, below: Ring | None = None
    ) -> None:
        self.plan, self.k = plan, k
        self._above, self._row = above, k.index(0)
        self.groups, self.blocks, self.runs, self.near = map(taken.size, ("groups", "blocks", "runs", "near"))
        self.far = self.runs // self.near
        self.channels = taken.size("channels")
        self.sizes, self.window = taken.sizes("sizes"), taken.sizes("window")
        self.input = _memory(k, taken, "input", plan.element, above)
        self.batch, self.group, self.input_block = map(taken.size, ("batch", "group", "input_block"))
        step = taken.size("channel_step")
        self.channel_step = step if plan.channel_step is None else k.index(plan.channel_step)
        self.moves, self.taps = taken.sizes("moves"), taken.sizes("taps")
        self.weights, self.weights_run = taken.memory("weights"), taken.size("weights_run")
        *further, result = taken.each("targets")
        self.targets = [ConvTarget(k, *one) for one in zip(further, plan.expression.inputs[1:], strict=True)]
        self.targets.append(ConvTarget(k, result, plan.expression.result, below))

    def tasks(self) -> None:
        """Task by task, one row of the output, for the channels of a tile."""
        with each_task(self.k, [self.groups, self.far, *self.sizes[:-1], self.near]) as (
            batch,
            group,
            far,
            *outer,
            near,
        ):
            self.row(batch, group, far * self.near + near, outer)

    @property
    def all_blocks(self) -> Value:
        """How many blocks of output channels there are."""
        return self.groups * self.blocks

    def channels_of(self, group: Value, run: Value) -> tuple[Value, Value]:
        """The first block of output channels of a tile, and how many there are."""
        block = run * self.plan.vectors
        return group * self.blocks + block, self.k.smaller(self.blocks - block, self.plan.vectors)

    def row(self, batch: Value, group: Value, run: Value, outer: Sequence[Value]) -> None:
        """One row of the output, for a run of the channels of a group. ``outer``: where it is on the axes before."""
        k, plan = self.k, self.plan
        source = self.input.at(batch * self.batch + group * self.group)
        if plan.depthwise:
            source = source.at(run * self.input_block)
        if self._above is None:
            for position, move in zip(outer, self.moves, strict=False):
                source = source.at(position * move)
        else:
            self._row = self._above.first(outer[0])
        block = run * plan.vectors
        places = [one.at(batch, group * self.blocks + block, outer) for one in self.targets]
        size, done = self.sizes[-1], k.index(0)
        for tile in (Rest(plan.columns), *plan.rest):
            limit = size - (size - done) % tile.columns
            with nullcontext() if tile.runs == 1 else k.when((run % tile.runs).equals(0)):
                weights = [self._weights(group, run, one) for one in range(tile.runs)]
                with k.loop(f"columns{tile.columns}", limit, done, tile.columns) as column:
                    sums = self._sums(tile.columns, source.at(column * self.moves[-1]), weights)
                    self._write(sums, places, column, block)
            done = limit

    def _weights(self, group: Value, run: Value, further: int) -> Buffer:
        """Those of a run of channels, or of a further one; of the last one, where there is none any more."""
        if further:
            run = self.k.smaller(run + further, self.runs - 1)
        return self.weights.at((group * self.runs + run) * self.weights_run)

    def _sums(self, columns: int, source: Buffer, weights: list[Buffer]) -> list[list[Value]]:
        """The sums of some columns, for each vector of channels, of one run after the other."""
        k, plan = self.k, self.plan
        kind = plan.expression.inputs[0].computed
        grouping = plan.grouping
        start = [k.constant(0, kind, plan.lanes)] * (plan.vectors * len(weights))
        if grouping is not None and grouping.flips:
            start = self._vectors(weights)
            weights = [one.at(plan.vectors * plan.lanes) for one in weights]
        if plan.squares and columns > 1:
            return self._in_squares(columns, start, source, weights)
        sums = [[k.variable(one) for one in start] for _ in range(columns)]
        if plan.depthwise:
            self._each_alone([line[0] for line in sums], source, weights[0])
        else:
            self._together(sums, source, weights)
        return [[total.value for total in line] for line in sums]

    def _together(self, sums: list[list[Variable]], source: Buffer, weights: list[Buffer]) -> None:
        """Sum over all input channels, one after the other, or some at once."""
        k, plan, columns = self.k, self.plan, len(sums)
        kind, grouping = plan.expression.inputs[0].computed, plan.grouping
        place = k.variable(k.index(0))

        def add(at: Buffer) -> None:
            vectors = self._vectors([one.at(place.value) for one in weights])
            if grouping is None:
                vectors = [k.convert(one, kind) for one in vectors]
            for column, line in enumerate(sums):
                where = column * plan.column_step
                if grouping is None:
                    factor = k.convert(at[where].splat(plan.lanes), kind)
                else:
                    factor = grouping.flipped(at.together(where, GROUPED).splat(plan.lanes))
                for total, vector in zip(line, vectors, strict=True):
                    total.value = plus_products(k, grouping, total.value, factor, vector)
            place.value = place.value + plan.vectors * plan.lanes

        step = 1 if grouping is None else grouping.size
        at_once = steps_at_once(plan.block // step, columns * len(sums[0]), grouping) if plan.whole else 1
        with k.loop("block", self.channels, step=plan.block) as first:
            count = k.index(plan.block) if plan.whole else k.smaller(self.channels - first, plan.block)
            start = source.at(first // plan.block * self.input_block)
            self._over(start, columns, count, add, step=step, at_once=at_once)

    def _in_squares(self, columns: int, start: list[Value], source: Buffer, weights: list[Buffer]) -> list[list[Value]]:
        """The sums of some columns, with two groups of channels at once: of one block, or one of each of two blocks."""
        k, plan, grouping = self.k, self.plan, self.plan.grouping
        assert grouping is not None  # as the plan says
        size, each = grouping.size, plan.vectors * plan.lanes
        is_across = plan.block == size
        factors = _PairFactors(self, columns, grouping, self.input_block if is_across else k.index(size))
        squares = SquareSums(k, grouping.dot, columns, start)
        window = reduce(lambda a, b: a * b, self.window) if plan.moves else k.index(1)
        apart, place = window * each if is_across else k.index(each), k.variable(k.index(0))

        def add(at: Buffer) -> None:
            both = (self._vectors([run.at(one) for run in weights]) for one in (place.value, place.value + apart))
            vectors = [half for two in zip(*both, strict=True) for half in interleaved(k, *two)]
            squares.add(factors.of(at), vectors)
            place.value = place.value + (each if is_across else TOGETHER * each)

        blocks, step = (TOGETHER, size) if is_across else (1, TOGETHER * size)
        with k.loop("block", self.channels, step=plan.block * blocks) as first:
            there = source.at(first // plan.block * self.input_block)
            # More steps in a row are more factors that LLVM puts together before it needs them, and spills.
            self._over(there, columns, k.index(plan.block), add, step=step, at_once=1)
            if is_across:
                place.value = place.value + apart
        return squares.totals()

    def _vectors(self, weights: list[Buffer]) -> list[Value]:
        """The weights of a step, of one run after the other."""
        places = [v * self.plan.lanes for v in range(self.plan.vectors)]
        return [run.vector(one, self.plan.lanes) for run in weights for one in places]

    def _over(
        self, start: Buffer, columns: int, count: Value, add: Callable[[Buffer], None], *, step: int, at_once: int
    ) -> None:
        """Add all steps of a block of input channels, over the window.

        ``count``: of channels; ``step``: how many of them each ``add`` is for, so many of which are written out.
        """
        k, plan = self.k, self.plan

        def over_channels(at: Buffer) -> None:
            if plan.block == plan.lanes:  # no processor foresees that the next block lies elsewhere
                self._prefetch(at.at(self.input_block), columns)
            with k.loop("channel", count, step=at_once * step) as channel:
                for one in range(0, at_once * step, step):
                    add(at.at((channel + one) * self.channel_step))

        if plan.moves or self._above is not None:  # which rows of a ring are read is said there
            self.over_window(start, 0, plan.spatial, over_channels)
        else:
            over_channels(start)

    def _prefetch(self, at: Buffer, columns: int) -> None:
        """Have what some columns read brought near, each line of the cache once or twice."""
        size = self.plan.element.bytes
        last = {column * self.plan.column_step * size // CACHE_LINE: column for column in range(columns)}
        for column in sorted({0, *last.values()}):
            at.prefetch(column * self.plan.column_step)

    def _each_alone(self, sums: list[Variable], source: Buffer, weights: Buffer) -> None:
        """Sum a vector of channels over a window. What several columns read of a row of it is loaded once.

        Integers of up to 16 bits are the lower ones of pairs whose upper one is multiplied by 0.
        """
        k, plan = self.k, self.plan
        kind, (taps, apart) = plan.expression.inputs[0].computed, plan.taps
        pairs_of = pairs_for(k.isa, plan.element, plan.weights, kind)
        place = k.variable(k.index(0))
        readers: dict[int, list[tuple[int, int]]] = {}
        for column, tap in product(range(len(sums)), range(taps)):
            readers.setdefault(column * plan.column_step + tap * apart, []).append((column, tap))

        def add(at: Buffer) -> None:
            places = [place.value + tap * plan.lanes for tap in range(taps)]
            vectors = [k.convert(weights.vector(one, plan.lanes), kind) for one in places]
            if pairs_of is not None:
                vectors = [one & 0xFFFF for one in vectors]
            for where, pairs in sorted(readers.items()):
                factor = k.convert(at.vector(where, plan.lanes), kind)
                for column, tap in pairs:
                    total, vector = sums[column].value, vectors[tap]
                    sums[column].value = (
                        factor.times_plus(vector, total)
                        if pairs_of is None
                        else k.dots(pairs_of, factor, vector, total)
                    )
            place.value = place.value + taps * plan.lanes

        self.over_window(source, 0, plan.spatial - 1, add)

    def over_window(self, at: Buffer, axis: int, axes: int, visit: Callable[[Buffer], None]) -> None:
        """Visit all positions of a window, from an axis on, up to another one."""
        if axis == axes:
            visit(at)
            return
        with self.k.loop(f"tap{axis}", self.window[axis]) as tap:
            ring = None if axis else self._above
            there = tap if ring is None else ring.place(self._row + tap * ring.dilation)
            self.over_window(at.at(there * self.taps[axis]), axis + 1, axes, visit)

    def _write(self, sums: list[list[Value]], places: Sequence[Buffer], column: Value, block: Value) -> None:
        """Send the sums through the expression, and write those of channels that there are."""
        for v in range(len(sums[0])):
            with self.k.when(block + v < self.blocks):
                rows = [place.at(one.block * v) for one, place in zip(self.targets, places, strict=True)]
                self.write_vectors([line[v] for line in sums], rows, column)

    def write_vectors(self, sums: list[Value], rows: Sequence[Buffer], column: Value) -> None:
        """The same for one vector of channels of some columns. ``rows``: where operands and the result are."""
        plan, pairs = self.plan, zip(self.targets, self.plan.steps, strict=True)
        moves = [one.moves[-1] if step is None else step for one, step in pairs]
        at = [row.at(column * move) for row, move in zip(rows, moves, strict=True)]
        further = list(zip(at, moves, plan.along_channels, strict=False))
        same = {number: self._operand(*one, 0) for number, one in enumerate(further) if one[1] == 0}
        # Two by two: what one vector waits for is done beside what the other waits for.
        for first in range(0, len(sums), 2):
            numbers = range(first, min(first + 2, len(sums)))
            operands = [rounded(self.k.joined([sums[number] for number in numbers]), plan.expression.inputs[0])]
            for i, one in enumerate(further):
                operands.append(self.k.joined([same.get(i) or self._operand(*one, number) for number in numbers]))
            found = plan.expression.compute(operands).splat(len(numbers) * plan.lanes)
            for number, one in zip(numbers, found.parts(len(numbers)), strict=True):
                at[-1].put(moves[-1] * number, one)

    def _operand(self, source: Buffer, move: Value | int, along: bool, number: int) -> Value:
        """A further operand of the expression for a column, by its number."""
        there, lanes = source.at(move * number), self.plan.lanes
        return there.vector(0, lanes) if along else there[0].splat(lanes)


class _PairFactors:
    """The factors of some columns for squares: two columns in four lanes, of two groups each, ``apart`` elements."""

    def __init__(self, writer: ConvWriter, columns: int, grouping: DotGrouping, apart: Value) -> None:
        self._k, self._columns, self._grouping, self._apart = writer.k, columns, grouping, apart
        self._step, self._is_across = writer.plan.column_step, writer.plan.block == grouping.size

    def of(self, at: Buffer) -> list[Value]:
        """Those of a step, the last one with anything for a column that there is not."""
        size, columns = self._grouping.size, self._columns
        each = size if self._is_across else TOGETHER * size
        if self._step != each:
            return [self._joined(at, one, min(one + 1, columns - 1)) for one in range(0, columns, TOGETHER)]
        found, first = list[Value](), 0
        while columns - first >= TOGETHER:  # neighbours in memory, as many as a register of 128 bits takes
            count = min(LANES if self._is_across else TOGETHER, (columns - first) // TOGETHER * TOGETHER)
            found += self._neighbours(at.at(first * self._step), count)
            first += count
        return [*found, self._joined(at, first, first)] if first < columns else found

    def _neighbours(self, at: Buffer, count: int) -> list[Value]:
        if not self._is_across:
            return [self._flipped(at.together(0, GROUPED, LANES))]
        first, second = (self._flipped(one.together(0, GROUPED, count)) for one in (at, at.at(self._apart)))
        pairs = ((one, count + one, one + 1, count + one + 1) for one in range(0, count, TOGETHER))
        return [self._k.shuffled(first, second, pair) for pair in pairs]

    def _joined(self, at: Buffer, one: int, other: int) -> Value:
        """Two columns, wherever they are."""
        places = [at.at(column * self._step) for column in (one, other)]
        if not self._is_across:
            return self._flipped(self._k.joined([place.together(0, GROUPED, TOGETHER) for place in places]))
        groups = [there.together(0, GROUPED, 1) for place in places for there in (place, place.at(self._apart))]
        return self._flipped(self._k.joined(groups))

    def _flipped(self, groups: Value) -> Value:
        return self._grouping.flipped(groups)


class ConvTarget:
    """The result, or a further operand of the expression: where its elements are. ``ring``: see `ConvWriter`."""

    def __init__(self, k: Kernel, taken: Taken, element: ElementType, ring: Ring | None = None) -> None:
        self.memory, self._ring = _memory(k, taken, "tensor", element, ring), ring
        self.batch, self.block = taken.size("batch"), taken.size("block")
        self.moves = taken.sizes("moves")

    @staticmethod
    def declared(element: ElementType, spatial: int, ring: Ring | None = None) -> tuple[Item, ...]:
        """Its arguments."""
        return (_declared("tensor", element, ring), Size("batch"), Size("block"), Sizes("moves", spatial))

    def at(self, batch: Value, block: Value, outer: Sequence[Value]) -> Buffer:
        """From the begin of a row on."""
        found = self.memory.at(batch * self.batch + block * self.block)
        if self._ring is not None:
            outer = [self._ring.place(outer[0])]
        for position, move in zip(outer, self.moves, strict=False):
            found = found.at(position * move)
        return found


def _declared(name: str, element: ElementType, ring: Ring | None) -> Memory | Size:
    """The argument that says where a tensor is, or rows in scratch memory are."""
    return Memory(name, element) if ring is None else Size(name)


def _memory(k: Kernel, taken: Taken, name: str, element: ElementType, ring: Ring | None) -> Buffer:
    """The memory of a tensor, or of rows in scratch memory."""
    return taken.memory(name) if ring is None else k.scratch(U8).at(taken.size(name)).of(element)
