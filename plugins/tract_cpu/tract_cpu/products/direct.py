"""Direct convolutions: what tiles they have, and the arguments of their kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt, prod
from typing import Final

from tract_llvm.language.tiles import ROWS
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, less_or_equal, product
from tract_core.frozen import frozen
from tract_cpu.caches import caches
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.conv import ConvPlan, Rest
from tract_cpu.kernels.squares import TOGETHER, pairs_of
from tract_cpu.kernels.sums import SUMS_IN_FLIGHT
from tract_cpu.kernels.tile_conv import TileConvPlan
from tract_cpu.kernels.tiles import TALL
from tract_cpu.products.cut import SMALL_PIECES, evenly
from tract_cpu.products.weights import packed
from tract_cpu.products.windows import Parts, WindowAxis, first, target_of
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.program import NativeStep

_LOAD: Final = 0.15
"""What a load costs while others are under way, in multiply-adds of vectors."""

_LOAD_FAR: Final = 1.5
"""The same for what the second cache does not keep."""

_WAIT: Final = SUMS_IN_FLIGHT // 2
"""What a step of a tile costs at least: with fewer sums, the processor waits for them."""

_LONG: Final = 1 << 10
"""Positions along an axis whose length is not known now."""

_TOO_LONG: Final = 1 << 34
"""Positions of no tensor that a machine has."""

NEAR: Final = 1 << 18
"""Bytes that stay in the second cache while other data goes through it."""


@frozen
class Candidate:
    """A direct convolution that may be computed row by row with others, by its result.

    ``owner``: which model it is in, 0 for the outermost one. ``only_reader``: the node that alone reads the result,
    once, if one does. ``stays``: whether the result is in blocks that are read as they are.
    """

    direct: Direct
    owner: int
    only_reader: int | None
    stays: bool


@frozen
class Direct:
    """A direct convolution. ``loops``: over positions, with strides as `_loops` says; ``kernel``: the packed weights.

    ``windows``: the axes along which windows move, one for each loop; none where they are one element each.
    """

    parts: Parts
    plan: ConvPlan
    loops: tuple[StridedLoop, ...]
    windows: tuple[WindowAxis, ...]
    kernel: View

    @property
    def work(self) -> Dim:
        """How many products are summed."""
        return product(self.parts.result.shape) * product(self.parts.weights.view.shape[1:])

    def step(self) -> NativeStep:
        """The call of the kernel."""
        parts = self.parts
        groups, runs, _ = self.kernel.shape
        count = parts.result.shape[0] if parts.has_batch else 1
        tasks = product([count, groups, runs, *(loop.size for loop in self.loops[:-1])])
        nodes, results = parts.chain.nodes, (parts.result.storage,)
        return NativeStep(self.plan, arguments(self.plan, **self.given()), tasks, nodes, results, work=self.work)

    def given(self) -> dict[str, Given]:
        """What the kernel is told, by name."""
        parts, loops, windows, source = self.parts, self.loops, self.windows, self.parts.source.view
        form, weights, ones = parts.form, parts.weights, len(self.loops)
        groups, runs, run = self.kernel.shape
        block, batch = source.strides[form.axis], source.strides[0] if parts.has_batch else 0
        per_group = weights.inputs // parts.source.block if groups != 1 else 0
        near = runs if less_or_equal(weights.bytes, NEAR) is True else 1
        return {
            "groups": groups,
            "blocks": form.blocks // groups,
            "runs": runs,
            "near": near,
            "channels": _inputs(parts),
            "sizes": [loop.size for loop in loops],
            "window": [one.window for one in windows] or [1] * ones,
            "input": first(parts).address,
            "batch": batch,
            "group": block * per_group,
            "input_block": block,
            "channel_step": source.strides[-1],
            "moves": [loop.strides[0] for loop in loops],
            "taps": [source.strides[one.place] * one.dilation for one in windows] or [0] * ones,
            "weights": self.kernel.address,
            "weights_run": run,
            "targets": [
                target_of(parts, view, [loop.strides[number] for loop in loops])
                for number, view in enumerate((*parts.chain.operands, parts.result), start=1)
            ],
        }

    def in_rows(self, parts: Parts, registers: int) -> Direct:
        """The same, row by row, with the data or the result elsewhere."""
        loops = _spread(parts)
        plan = self.plan
        room = _room(registers, plan.vectors, depthwise=parts.depthwise, squares=plan.squares)
        columns = _filling(loops[-1].size, room, squares=plan.squares)
        plan = _on(replace(self.plan, columns=columns), parts, loops)
        return Direct(parts, plan, loops, parts.axes, self.kernel)


def direct(site: Site, parts: Parts) -> Direct:
    """How a convolution is computed directly: its weights are packed now, or by steps that are added."""
    form, source, weights = parts.form, parts.source.view, parts.weights
    groups = 1 if parts.depthwise else parts.groups
    loops, blocks = _loops(parts), form.blocks // groups
    pieces = _pieces(loops[0], weights.inputs * source.element.bytes) if len(loops) == 1 and not _moves(parts) else []
    block = form.block * product(weights.view.shape[1:]) * weights.element.bytes
    squares = _squares(parts)
    rows = _Rows(loops, blocks, groups, pieces, block, squares)
    tile = rows.tile(site.isa.registers, depthwise=parts.depthwise)
    if pieces:
        loops = _cut(loops[0], tile.pieces)
    if parts.in_tiles:
        tile = _Tile(tile.pieces, TALL * ROWS, min(TALL, blocks))
    width = tile.vectors * form.block
    kernel = packed(
        site.lowering, weights, groups, width, parts.source.block, grouping=parts.grouping, whole_blocks=parts.in_tiles
    )
    plan = (TileConvPlan if parts.in_tiles else ConvPlan)(
        spatial=len(loops),
        columns=tile.columns,
        rest=(),
        vectors=tile.vectors,
        lanes=form.block,
        block=parts.source.block,
        channel_step=None,
        column_step=0,
        depthwise=parts.depthwise,
        taps=(0, 0),
        element=source.element,
        weights=kernel.element,
        expression=parts.chain.expression,
        along_channels=tuple(view.strides[-1] != 0 for view in parts.chain.operands),
        steps=(),
        grouping=parts.grouping,
        moves=_moves(parts),
        whole=_inputs(parts) % parts.source.block == 0,
        squares=squares,
    )
    return Direct(parts, _on(plan, parts, loops), tuple(loops), parts.axes if _moves(parts) else (), kernel)


def conv_step(site: Site, parts: Parts) -> NativeStep:
    """The call of the kernel."""
    return direct(site, parts).step()


def _on(plan: ConvPlan, parts: Parts, loops: Sequence[StridedLoop]) -> ConvPlan:
    """The plan, for what is read at such strides."""
    channel, column = parts.source.view.strides[-1], loops[-1].strides[0]
    assert isinstance(column, int)  # the caller asked
    blocks = parts.form.blocks // (1 if parts.depthwise else parts.groups)
    taps = (1, 0)
    if parts.depthwise and len(loops) == len(parts.axes):
        last = parts.axes[-1]
        taps = (last.window, last.dilation * int(parts.source.view.strides[last.place]))
    return replace(
        plan,
        spatial=len(loops),
        rest=() if parts.in_tiles else _rest(loops[-1].size, plan, -(-blocks // plan.vectors)),
        channel_step=channel if isinstance(channel, int) else None,
        column_step=column,
        taps=taps if parts.depthwise else (0, 0),
        steps=tuple(step if isinstance(step, int) else None for step in loops[-1].strides[1:]),
    )


def _inputs(parts: Parts) -> Dim:
    """How many input channels each output channel sums, with those that fill the last group of products."""
    at_once = 1 if parts.grouping is None else parts.grouping.size
    return ceil_div(parts.weights.inputs, at_once) * at_once


def _squares(parts: Parts) -> bool:
    """Whether two groups of channels are summed at once, in squares: where these surely come in pairs."""
    grouping, block = parts.grouping, parts.source.block
    if grouping is None or not grouping.dot.square or parts.depthwise or parts.in_tiles:
        return False
    both = TOGETHER * grouping.size
    return (block == grouping.size or block % both == 0) and _inputs(parts) % max(block, both) == 0


def _moves(parts: Parts) -> bool:
    """Whether windows are not one element each."""
    return any(one.window != 1 for one in parts.axes)


def _spread(parts: Parts) -> tuple[StridedLoop, ...]:
    """A loop for each axis. Strides: of what a window reads first, of operands, of the result."""
    views = (*parts.chain.operands, parts.result)
    return tuple(
        StridedLoop(
            parts.result.shape[one.place],
            (parts.source.view.strides[one.place] * one.stride, *(view.strides[one.place] for view in views)),
        )
        for one in parts.axes
    )


def _loops(parts: Parts) -> list[StridedLoop]:
    """The loops over positions of the result, as few as can be, with strides as in `_spread`."""
    spread = list(_spread(parts))
    if _moves(parts):
        return spread
    found = collapsed([loop.size for loop in spread], list(zip(*(loop.strides for loop in spread), strict=True)))
    if found and isinstance(found[-1].strides[0], int):
        return found
    views = len(parts.chain.operands) + 2
    return [*found, StridedLoop(1, (0,) * views)]  # kernels know how far apart the columns that they read are


@frozen
class _Tile:
    """Columns and vectors of a tile, and into how many pieces each row is cut."""

    pieces: int
    columns: int
    vectors: int


@frozen
class _Rows:
    """The rows that a convolution computes. ``blocks``: of output channels of each of the ``groups``.

    ``pieces``: into how many pieces of one length its only row may be cut; none where there are more, or as it is.
    ``weights``: bytes of those of one block of output channels. ``squares``: whether columns are summed two by two.
    """

    loops: Sequence[StridedLoop]
    blocks: int
    groups: int
    pieces: Sequence[int]
    weights: Dim
    squares: bool = False

    def tile(self, registers: int, *, depthwise: bool) -> _Tile:
        """As many sums as registers hold, in columns that fill the row, where all tiles together cost the least."""
        width = self.loops[-1].size
        if depthwise:
            return _Tile(1, _filling(width, _room(registers, 1, depthwise=True)), 1)
        few = [vectors for vectors in (4, 3, 2, 1) if vectors <= self.blocks]
        cuts = [(n, _size(width) // n) for n in self.pieces] or [(1, width)]
        rooms = [(v, _room(registers, v, squares=self.squares)) for v in few]
        tiles = (_Tile(n, _filling(each, room, squares=self.squares), v) for n, each in cuts for v, room in rooms)
        return min(tiles, key=self._cost)

    def _cost(self, tile: _Tile) -> float:
        """What all rows cost for one input channel, in multiply-adds of vectors; loads are hidden for the most.

        Each tile reads all weights of its channels, which had best stay in the second cache from one tile to the next.
        Vectors that are no channels cost as much as others. Each thread had best have as many tasks: here, of one, of
        two and of four.
        """
        *outer, width = (_size(loop.size) for loop in self.loops)
        whole, rest = divmod(width // tile.pieces, tile.columns)
        tasks = -(-self.blocks // tile.vectors) * self.groups * prod(outer) * tile.pieces
        even = sum(-(-tasks // threads) * threads for threads in (1, 2, 4))
        stays = less_or_equal(self.weights * tile.vectors, caches().second // 4 * 3) is not False
        load = _LOAD if stays else _LOAD_FAR
        each, last = (self._step(one, tile.vectors, load) for one in (tile.columns, rest))
        waits = max(0, _WAIT - tile.columns * tile.vectors)
        return even * (whole * (each + waits) + (last if rest else 0))

    def _step(self, columns: int, vectors: int, load: float) -> float:
        if self.squares:  # one instruction for two products, and one for every factor that is put together
            columns = pairs_of(columns)
            load += 1
        return columns * vectors + _LOAD * columns + load * vectors + 1


def _rest(width: Dim, plan: ConvPlan, runs: int) -> tuple[Rest, ...]:
    """The tiles that compute what whole tiles leave over, where there are so many runs of channels."""
    if isinstance(width, int):
        few = [width % plan.columns] if width % plan.columns else []
    else:
        few = [one for one in SMALL_PIECES if one < plan.columns]
    return tuple(Rest(columns, _runs_at_once(columns, plan, runs)) for columns in few)


def _runs_at_once(columns: int, plan: ConvPlan, runs: int) -> int:
    """For how many runs of channels a tile of few columns sums, so that the processor does not wait for most of them.

    Where it waits for less than that, this would only make kernels of their own for other numbers of channels.
    """
    sums = columns * plan.vectors
    if sums > _WAIT // 2 or plan.depthwise or (plan.squares and columns > 1):
        return 1
    return evenly(runs, SUMS_IN_FLIGHT // sums)


def _size(size: Dim) -> int:
    """A size, or a large one where it is not known now."""
    return size if isinstance(size, int) and size > 0 else _LONG


def _pieces(loop: StridedLoop, each: Dim) -> list[int]:
    """Into how many pieces a loop over positions may be cut, so that these have the same length.

    Each is so short that all output channels can be computed while it is in the cache. ``each``: bytes of a position.
    """
    size = loop.size
    if not isinstance(size, int) or not isinstance(each, int) or not 0 < size < _TOO_LONG:
        return []
    lower = [count for count in range(1, isqrt(size) + 1) if size % count == 0]
    divisors = sorted({*lower, *(size // count for count in lower)})
    return [count for count in divisors if size // count * each <= NEAR]


def _cut(loop: StridedLoop, pieces: int) -> list[StridedLoop]:
    """A loop over positions as two."""
    size = loop.size // pieces
    return [StridedLoop(pieces, tuple(stride * size for stride in loop.strides)), StridedLoop(size, loop.strides)]


def _filling(width: Dim, columns: int, *, squares: bool = False) -> int:
    """About as many columns, so that a row is made of whole tiles."""
    if not isinstance(width, int) or width < 1:
        return columns
    found = evenly(width, columns)
    return min(found + found % TOGETHER, columns) if squares else found


def _room(registers: int, vectors: int, *, depthwise: bool = False, squares: bool = False) -> int:
    """How many columns the registers have room for, beside the factors; two for each where data is read in vectors.

    In squares, all pairs of columns are in registers, too, as in products (`tile_for`).
    """
    if squares:
        return TOGETHER * ((registers - vectors) // (TOGETHER * vectors + 1))
    return (registers - 4) // 2 if depthwise else (registers - 1 - vectors) // vectors
