"""Convolutions with windows of three positions by Winograd's minimal filtering: fewer products for the same sums.

Along an axis, the sums of a tile of ``m`` outputs are the coefficients of a polynomial, of which m + 2 values tell all
of them; so few products of a value of the data with a value of the weights are needed, where the sums themselves take
3 m (Winograd 1980, "Arithmetic complexity of computations"; Lavin and Gray 2016, "Fast algorithms for convolutional
neural networks"). Data and weights are transformed, to these values; positions are matrix products over the channels;
and what comes out is transformed back. With several axes each is transformed in turn.

Values are taken at 0, at pairs of points of opposite sign, and at infinity. Pairs whose products are about 1 keep
numbers of one size together: with the square roots of 1/2 and of 2, errors are those of direct sums.

A piece of the tiles is transformed at once, so many that what became of them stays in the second cache, and the weights
of one run of output channels after the other meet it. These are transformed over again for every piece: that takes less
than to read them from memory transformed, four times as large.

An infinity, or what is no number, goes to all outputs of a tile, and large numbers may overflow on the way. So a tile
with an output that is not finite is summed again, directly.

Bytes are transformed to integers of 16 bits, which hold what they become in tiles of two outputs, and are multiplied in
pairs of channels. To transform such a tile back means to halve numbers along each axis. That is done in the end, by a
shift: until then sums are twice as large for each axis, and may wrap around. Results are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product as every
from math import prod
from typing import Final

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cpu.caches import CACHE_LINE
from tract_cpu.kernels.conv import ConvTarget
from tract_cpu.kernels.dots import GROUPED, DotGrouping
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Each, Memory, Signature, Size, Sizes
from tract_cpu.kernels.sums import plus_products, steps_at_once

WINDOW: Final = 3
"""Positions of a window, along axes that are transformed."""

PAIRS: Final[dict[int, tuple[float, ...]]] = {1: (), 2: (1.0,), 4: (0.5**0.5, 2**0.5)}
"""The points at which values are taken, but for 0, those of opposite sign, and infinity, by outputs of a tile.

A tile of one output is not transformed, and its windows have one position.
"""


def positions(outputs: int) -> int:
    """How many values there are along an axis, for a tile of so many outputs."""
    return outputs + WINDOW - 1 if outputs > 1 else 1


@frozen
class WinogradPlan:
    """How a convolution is cut.

    ``tile``: outputs along each axis, as in `PAIRS`. ``columns``, ``vectors``: tiles and vectors of ``lanes`` output
    channels whose products are summed in registers at a time; ``rest``: how many tiles at a time compute what that
    leaves over of a piece, the widest first. ``piece``: how many tiles are transformed at once, at most; ``chunk``: for
    how many input channels weights are. ``whole``: whether input channels fill whole blocks. ``column_step``: elements
    from one position of the input to the next along the last axis. ``expression``: what becomes of a sum, which is its
    first operand; ``along_channels``: of each further operand, whether it has a number for every channel of a block, or
    one for all. ``grouping``: how products of integers are summed in groups of channels.
    """

    tile: tuple[int, ...]
    columns: int
    rest: tuple[int, ...]
    vectors: int
    lanes: int
    piece: int
    chunk: int
    whole: bool
    column_step: int
    element: ElementType
    weights: ElementType
    expression: Expression
    along_channels: tuple[bool, ...]
    grouping: DotGrouping | None = None

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "winograd"

    @property
    def factors(self) -> ElementType:
        """The type of transformed data and weights."""
        return self.expression.inputs[0].computed if self.grouping is None else self.grouping.left

    @property
    def positions(self) -> int:
        """How many values a tile is transformed to."""
        return prod(map(positions, self.tile))

    @property
    def width(self) -> int:
        """Output channels of a run."""
        return self.vectors * self.lanes

    @property
    def apart(self) -> tuple[int, int, int]:
        """How far apart values of the data, sums, and values of the weights are that belong to neighbouring positions.

        An odd number of vectors, so that those of one tile do not share a set of the cache.
        """
        found = [size | 1 for size in (self.piece, self.piece * self.vectors, self.chunk * self.vectors)]
        data, sums, weights = (size * self.lanes for size in found)
        return data, sums, weights

    def scratch(self, channels: int) -> int:
        """Bytes of memory that it wants, for so many input channels."""
        data, sums, weights = self.apart
        numbers = self.positions * (-(-channels // self.lanes) * data + sums + weights)
        return INDEX.bytes * _rounded(self.piece, self.lanes) + self.expression.inputs[0].computed.bytes * numbers

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        axes, types = len(self.tile), (*self.expression.inputs[1:], self.expression.result)
        return Signature.of(
            *map(Size, ("tiles", "runs", "channels", "outputs")),
            Sizes("sizes", axes),
            Memory("input", self.element),
            Size("batch"),
            Size("input_block"),
            Sizes("moves", axes - 1),
            Memory("weights", self.weights),
            Size("weights_run"),
            Each("targets", tuple(ConvTarget.declared(one, axes) for one in types)),
        )

    def emit(self, k: Kernel) -> None:
        """output[n, o, p] = expression(sum of weights[o, i, t] * input[n, i, p + t], ...)

        Task by task: a piece of the tiles, for a run of output channels.
        """
        k.keep_addresses()
        winograd = _Winograd(self, k)
        with k.loop("task", k.end, k.begin) as task:
            winograd.task(task)


class _Winograd:
    """The convolution while it is written. Sizes: of the result, in elements, and in tiles."""

    def __init__(self, plan: WinogradPlan, k: Kernel) -> None:
        self.plan, self.k = plan, k
        taken = plan.signature.taken(k)
        self.kind = plan.expression.inputs[0].computed
        self.tiles, self.runs, self.channels, self.outputs = map(taken.size, ("tiles", "runs", "channels", "outputs"))
        self.sizes = taken.sizes("sizes")
        self.counts = [(size + (m - 1)) // m for size, m in zip(self.sizes, plan.tile, strict=True)]
        self.input, self.batch, self.input_block = (
            taken.memory("input"),
            *map(taken.size, ("batch", "input_block")),
        )
        self.moves = [*taken.sizes("moves"), k.index(plan.column_step)]
        self.weights, self.weights_run = taken.memory("weights"), taken.size("weights_run")
        types = (*plan.expression.inputs[1:], plan.expression.result)
        self.targets = [ConvTarget(k, *one) for one in zip(taken.each("targets"), types, strict=True)]
        self.value, self.sum, self.panel = plan.apart
        self.block_values = self.value * plan.positions
        blocks = (self.channels + (plan.lanes - 1)) // plan.lanes
        self.places = k.scratch(INDEX)
        transformed = self.places.at(_rounded(plan.piece, plan.lanes)).of(self.kind)
        self.data, self.sums = transformed.of(plan.factors), transformed.at(blocks * self.block_values)
        self.panels = self.sums.at(self.sum * plan.positions)
        self.laid = k.own(self.kind, prod(plan.tile) * plan.width)
        self.ready = k.variable(k.index(-1))

    def task(self, task: Value) -> None:
        """One piece of the tiles, for a run of output channels."""
        k, plan = self.k, self.plan
        piece, run = task // self.runs, task % self.runs
        first = piece * plan.piece
        count = k.smaller(self.tiles - first, plan.piece)
        with k.when(self.ready.value.differs(piece)):
            self._transform_data(first, count)
            self.ready.value = piece
        weights = self.weights.at(run * self.weights_run)
        with k.loop("chunk", self.channels, step=plan.chunk) as begin:
            end = k.smaller(self.channels, begin + plan.chunk)
            self._transform_weights(weights, begin, end)
            with k.loop("position", plan.positions) as position:
                self._fetch(weights, end, position)
                self._multiply(position, begin, end, count)
        with k.loop("tile", count) as tile:
            self._write(tile, first + tile, run * plan.vectors, weights)

    def _place(self, tile: Value) -> tuple[Value, list[Value]]:
        """Where a tile is: its number along the batch, and its first position along each axis."""
        found: list[Value] = []
        for count, m in zip(reversed(self.counts), reversed(self.plan.tile), strict=True):
            found.insert(0, tile % count * m)
            tile = tile // count
        return tile, found

    def _source(self, batch: Value, place: Sequence[Value]) -> Buffer:
        """The data from the first position of a tile on."""
        source = self.input.at(batch * self.batch)
        for position, move in zip(place, self.moves, strict=True):
            source = source.at(position * move)
        return source

    def _transform_data(self, first: Value, count: Value) -> None:
        """data[block of channels, position, tile, channel of the block], for the tiles of a piece."""
        k, plan = self.k, self.plan
        sizes = [positions(m) for m in plan.tile]
        with k.loop("place", count) as tile:
            batch, place = self._place(first + tile)
            terms = [position * move for position, move in zip(place, self.moves, strict=True)]
            self.places[tile] = reduce(lambda a, b: a + b, terms, batch * self.batch)
        with k.loop("data.block", self.channels, step=plan.lanes) as channel:
            block = channel // plan.lanes
            source, target = self.input.at(block * self.input_block), self.data.at(block * self.block_values)
            with k.loop("data.tile", count) as tile:
                at, to = source.at(self.places[tile]), target.at(tile * plan.lanes)
                values = [at.vector(self._offset(one), plan.lanes) for one in every(*map(range, sizes))]
                found = _each_axis([k.convert(one, plan.factors) for one in values], sizes, plan.tile, _data)
                for position, value in enumerate(found):
                    to.put(position * self.value, value)

    def _offset(self, place: Sequence[int]) -> Value:
        """How far a position of a tile is from its first one, in the data."""
        terms = [move * position for position, move in zip(place, self.moves, strict=True) if position]
        return reduce(lambda a, b: a + b, terms, self.k.index(0))

    def _transform_weights(self, weights: Buffer, begin: Value, end: Value) -> None:
        """panels[position, input channel, output channel of the run], for some input channels."""
        k, plan, size = self.k, self.plan, self._together
        sizes = [WINDOW if m > 1 else 1 for m in plan.tile]
        taps = prod(sizes)
        with k.loop("weights.block", end, begin, plan.lanes) as first:
            depth = self._depth(first)
            source = weights.at(first * (taps * plan.width))
            target = self.panels.at((first - begin) // size * plan.width)
            with k.loop("weights.vector", depth // size * plan.width, step=plan.lanes) as place:
                at, to = source.at(place + place // plan.width * (plan.width * (size - 1))), target.at(place)
                each: list[list[Value]] = []
                for channel in range(size):
                    places = [depth * (tap * plan.width) + channel * plan.width for tap in range(taps)]
                    values = [k.convert(at.vector(one, plan.lanes), plan.factors) for one in places]
                    each.append(_each_axis(values, sizes, plan.tile, _weights))
                for position, neighbours in enumerate(zip(*each, strict=True)):
                    to.put(position * self.panel, self._joined(neighbours))

    @property
    def _together(self) -> int:
        """How many input channels are one step of a product."""
        return 1 if self.plan.grouping is None else self.plan.grouping.size

    def _joined(self, neighbours: Sequence[Value]) -> Value:
        """The weights of the input channels of a step."""
        grouping = self.plan.grouping
        if grouping is None:
            return neighbours[0]
        return grouping.joined([self.k.convert(one, GROUPED) for one in neighbours])

    def _depth(self, first: Value) -> Value:
        """How many channels the block has that begins with one."""
        k, lanes = self.k, self.plan.lanes
        return k.index(lanes) if self.plan.whole else k.smaller(self.channels - first, lanes)

    def _fetch(self, weights: Buffer, channel: Value, position: Value) -> None:
        """Have a share of the weights that are transformed next brought near: products read none meanwhile."""
        plan = self.plan
        taps = prod(WINDOW if m > 1 else 1 for m in plan.tile)
        line = CACHE_LINE // plan.weights.bytes
        lines = -(-plan.chunk * taps * plan.width // (line * plan.positions))
        share = weights.at(channel * (taps * plan.width) + position * (lines * line))
        for number in range(lines):
            share.prefetch(number * line)

    def _multiply(self, position: Value, begin: Value, end: Value, count: Value) -> None:
        """sums[position, tile, output channel] += data * panels, over some input channels."""
        k, plan = self.k, self.plan
        panel = self.panels.at(position * self.panel)
        data = self.data.at(position * self.value)
        sums = self.sums.at(position * self.sum)
        done: Value = k.index(0)
        for columns in (plan.columns, *plan.rest):
            limit = count - (count - done) % columns
            with k.loop(f"columns{columns}", limit, done, columns) as tile:
                self._product(columns, data.at(tile * plan.lanes), panel, sums.at(tile * plan.width), (begin, end))
            done = limit

    def _product(self, columns: int, data: Buffer, panel: Buffer, sums: Buffer, channels: tuple[Value, Value]) -> None:
        """Add the products of some tiles with the weights of a run, over some input channels."""
        k, plan = self.k, self.plan
        begin, end = channels
        zero, starts = k.constant(0, self.kind, plan.lanes), range(0, plan.width, plan.lanes)
        before = {
            (column, start): sums.vector(column * plan.width + start, plan.lanes)
            for column in range(columns)
            for start in starts
        }
        totals = {place: k.variable(k.select(begin.equals(0), zero, one)) for place, one in before.items()}
        at, size = k.variable(k.index(0)), self._together
        with k.loop("block", end, begin, plan.lanes) as first:
            source = data.at(first // plan.lanes * self.block_values)
            steps = steps_at_once(plan.lanes // size, columns * plan.vectors, plan.grouping) if plan.whole else 1
            count = k.index(plan.lanes) if plan.whole else k.smaller(end - first, plan.lanes)
            with k.loop("channel", count, step=steps * size) as channel:
                for line in (source.at(channel + one * size) for one in range(steps)):
                    vectors = [panel.vector(at.value + start, plan.lanes) for start in starts]
                    for column in range(columns):
                        factor = self._factor(line, column * plan.lanes)
                        for start, vector in zip(starts, vectors, strict=True):
                            total = totals[column, start]
                            total.value = plus_products(k, plan.grouping, total.value, factor, vector)
                    at.value = at.value + plan.width
        for (column, start), total in totals.items():
            sums.put(column * plan.width + start, total.value)

    def _factor(self, line: Buffer, place: int) -> Value:
        """The data at a place, with that of neighbouring channels in a step, in every lane."""
        one = line[place] if self.plan.grouping is None else line.together(place, GROUPED)
        return one.splat(self.plan.lanes)

    def _write(self, tile: Value, number: Value, block: Value, weights: Buffer) -> None:
        """Transform the sums of a tile back, send them through the expression, and write those that there are."""
        k, plan = self.k, self.plan
        batch, place = self._place(number)
        strange = k.variable(k.index(0))
        with k.loop("result.vector", plan.width, step=plan.lanes) as v:
            at, to = self.sums.at(tile * plan.width + v), self.laid.at(v)
            found = self._result([at.vector(position * self.sum, plan.lanes) for position in range(plan.positions)])
            for output, value in enumerate(found):
                to.put(output * plan.width, value)
            if self.kind.kind == "f":
                total = reduce(lambda a, b: a + b, found)
                there = k.mask(self.outputs - (block * plan.lanes + v), plan.lanes)
                with k.when(k.any((total - total).differs(0) & there)):
                    strange.value = k.index(1)
        if self.kind.kind == "f":
            with k.when(strange.value.differs(0)):
                self._sum_directly(self._source(batch, place), weights)
        outputs = [target.at(batch, block, ()) for target in self.targets]
        self._write_along(0, outputs, place, self.laid, block)

    def _result(self, values: Sequence[Value]) -> list[Value]:
        """What is summed at all positions of a tile, transformed back."""
        tile = self.plan.tile
        sizes = [positions(m) for m in tile]
        if self.kind.kind == "f":
            return _each_axis(values, sizes, tile, _result)
        doubled = _each_axis(values, sizes, tile, partial(_result, scale=2))
        return [one >> sum(m > 1 for m in tile) for one in doubled]

    def _sum_directly(self, source: Buffer, weights: Buffer) -> None:
        """laid[output, output channel] = sum of weights * input, in the order of a direct convolution."""
        k, plan = self.k, self.plan
        zero = k.constant(0, self.kind, plan.lanes)
        windows = [WINDOW if m > 1 else 1 for m in plan.tile]

        def one(at: Buffer, output: Value) -> None:
            totals = [k.variable(zero) for _ in range(plan.vectors)]
            place = k.variable(k.index(0))

            def add(line: Buffer, depth: Value) -> None:
                with k.loop("direct.channel", depth) as channel:
                    factor = k.convert(line[channel], self.kind).splat(plan.lanes)
                    for v, total in enumerate(totals):
                        vector = k.convert(weights.vector(place.value + v * plan.lanes, plan.lanes), self.kind)
                        total.value = factor.times_plus(vector, total.value)
                    place.value = place.value + plan.width

            with k.loop("direct.block", self.channels, step=plan.lanes) as first:
                depth = self._depth(first)
                start = at.at(first // plan.lanes * self.input_block)
                self._over("tap", windows, start, lambda line, _: add(line, depth), k.index(0))
            for v, total in enumerate(totals):
                self.laid.put(output * plan.width + v * plan.lanes, total.value)

        self._over("output", plan.tile, source, one, k.index(0))

    def _over(
        self, name: str, sizes: Sequence[int], at: Buffer, visit: Callable[[Buffer, Value], None], number: Value
    ) -> None:
        """Visit all positions of a box in the data, with their numbers, which go on from ``number``."""
        axis = len(self.plan.tile) - len(sizes)
        if not sizes:
            visit(at, number)
            return
        with self.k.loop(f"{name}{axis}", sizes[0]) as position:
            there = at.at(position * self.moves[axis])
            self._over(name, sizes[1:], there, visit, number * sizes[0] + position)

    def _write_along(
        self, axis: int, places: Sequence[Buffer], start: Sequence[Value], laid: Buffer, block: Value
    ) -> None:
        """Write the outputs of a tile, as far as the result goes along each axis."""
        k, plan = self.k, self.plan
        if axis == len(plan.tile):
            self._write_vectors(places, laid, block)
            return
        each = prod(plan.tile[axis + 1 :]) * plan.width
        with k.loop(f"write{axis}", k.smaller(self.sizes[axis] - start[axis], plan.tile[axis])) as position:
            there = start[axis] + position
            at = [place.at(there * target.moves[axis]) for place, target in zip(places, self.targets, strict=True)]
            self._write_along(axis + 1, at, start, laid.at(position * each), block)

    def _write_vectors(self, places: Sequence[Buffer], laid: Buffer, block: Value) -> None:
        k, plan = self.k, self.plan
        for v in range(plan.vectors):
            with k.when((block + v) * plan.lanes < self.outputs):
                at = [place.at(target.block * v) for place, target in zip(places, self.targets, strict=True)]
                operands = [rounded(laid.vector(v * plan.lanes, plan.lanes), plan.expression.inputs[0])]
                for source, along in zip(at[:-1], plan.along_channels, strict=True):
                    operands.append(source.vector(0, plan.lanes) if along else source[0].splat(plan.lanes))
                at[-1].put(0, plan.expression.compute(operands))


def _rounded(count: int, lanes: int) -> int:
    """So many or more, which fill whole vectors."""
    return -(-count // lanes) * lanes


_Transform = Callable[[Sequence[Value], Sequence[float]], list[Value]]
"""From the values along an axis, and the points of its pairs, to those that come out."""


def _each_axis(values: Sequence[Value], sizes: Sequence[int], tile: Sequence[int], one: _Transform) -> list[Value]:
    """Transform a box of values, the last axis fastest, along each of its axes that has more than one."""
    found = list(values)
    before = list(sizes)
    for axis, m in enumerate(tile):
        if m == 1:
            continue
        inner, size = prod(before[axis + 1 :]), before[axis]
        lines = [
            one(found[first + place : first + size * inner : inner], PAIRS[m])
            for first in range(0, len(found), size * inner)
            for place in range(inner)
        ]
        before[axis] = len(lines[0])
        found = [
            lines[outer + place][number]
            for outer in range(0, len(lines), inner)
            for number in range(before[axis])
            for place in range(inner)
        ]
    return found


def _data(d: Sequence[Value], pairs: Sequence[float]) -> list[Value]:
    """At each finite point, the product of the distances from all others, with powers replaced by the data."""
    even, odd = d[0::2], d[1::2]
    whole = _polynomial(pairs)
    found = [_weighted(whole, even)]
    for place, point in enumerate(pairs):
        others = _polynomial([*pairs[:place], *pairs[place + 1 :]])
        a, b = _weighted(others, even[1:]), _weighted(others, odd[:-1])
        b = _times(b, point)
        found += [a + b, a - b]
    return [*found, _weighted(whole, odd)]


def _weights(g: Sequence[Value], pairs: Sequence[float]) -> list[Value]:
    """The polynomial whose coefficients are the weights, at each point."""
    found = [g[0]]
    for point in pairs:
        even = _weighted([point * point, 1], [g[2], g[0]])
        odd = _times(g[1], point)
        found += [even + odd, even - odd]
    return [*found, g[2]]


def _result(s: Sequence[Value], pairs: Sequence[float], scale: int = 1) -> list[Value]:
    """The opposite of `_data`, transposed: powers of the points, over the product of their distances from others.

    ``scale``: of how many times that.
    """
    factors = [scale / prod(-p * p for p in pairs)]
    for place, point in enumerate(pairs):
        others = [*pairs[:place], *pairs[place + 1 :]]
        factors.append(scale / (2 * point * point * prod(point * point - p * p for p in others)))
    both = list(zip(s[1:-1:2], s[2:-1:2], strict=True))
    sides = [a + b for a, b in both], [a - b for a, b in both]
    outputs = 2 * len(pairs)
    found: list[Value] = []
    for power in range(outputs):
        terms = [(f * p**power, v) for f, p, v in zip(factors[1:], pairs, sides[power % 2], strict=True)]
        terms += [(factors[0], s[0])] if power == 0 else []
        terms += [(float(scale), s[-1])] if power == outputs - 1 else []
        terms.sort(key=lambda term: term[0] != 1)
        found.append(_weighted([factor for factor, _ in terms], [value for _, value in terms]))
    return found


def _polynomial(pairs: Sequence[float]) -> list[float]:
    """The coefficients of the product of x - p * p over points p, from that of 1 on."""
    found = [1.0]
    for point in pairs:
        found = [a - point * point * b for a, b in zip([0.0, *found], [*found, 0.0], strict=True)]
    return [round(one, 12) for one in found]


def _times(value: Value, factor: float) -> Value:
    return value if factor == 1 else value * factor


def _weighted(factors: Sequence[float], values: Sequence[Value]) -> Value:
    """The sum of values times factors."""
    pairs = sorted(zip(factors, values, strict=True), key=lambda pair: pair[0] != 1)
    factor, total = pairs[0]
    total = _times(total, factor)
    for factor, value in pairs[1:]:
        if factor == 1:
            total = total + value
        elif factor == -1:
            total = total - value
        else:
            total = value.times_plus(factor, total)
    return total
