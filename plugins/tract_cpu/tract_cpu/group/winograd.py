"""Which convolutions take fewer products by Winograd's method, and in which tiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as every
from math import prod
from typing import Final

from tract_llvm.isa import Isa
from tract_llvm.language.types import F32, I16, I32

from tract_core.dims import Dim, ceil_div
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.typed import TypedNode
from tract_core.ops.conv import Conv
from tract_core.ops.pool_spec import AxisPlan
from tract_cpu.group.dots import factor_of, grouping_of_channels
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.ranges import IntegerRange
from tract_cpu.kernels.winograd import PAIRS, WINDOW, positions

UNKNOWN: Final = 16
"""The size that an axis is taken to have which has none yet."""

ROOM: Final = 3 << 19
"""Bytes that a piece of the tiles takes, transformed. More than the second cache has is read in order, which costs less
than to transform the weights for more pieces."""

TRANSFORM: Final = 8
"""What it takes to transform a value of a block of channels, there or back, and to bring it where it belongs.

In products of vectors, as measured on whole layers, as is the next one.
"""

TRANSFORM_WEIGHTS: Final = 3
"""The same for a value of the weights."""

GAIN: Final = 1.25
"""How much less there has to be to do."""

EXACT: Final = 2
"""How many outputs a tile of integers has along an axis: with more, 16 bits do not hold what weights become."""


@frozen
class _Layer:
    """What the choice depends on: channels, and sizes of the result. ``windows``: positions of them along each axis."""

    isa: Isa
    inputs: int
    outputs: int
    batch: int
    sizes: tuple[int, ...]
    windows: tuple[int, ...]

    def blocks(self, channels: int) -> int:
        """How many vectors have so many channels."""
        return -(-channels // self.isa.lanes(F32.bits))

    def tiles(self, tile: Sequence[int]) -> int:
        """How many there are."""
        return self.batch * prod(-(-size // m) for size, m in zip(self.sizes, tile, strict=True))

    @property
    def directly(self) -> int:
        """Products of vectors in sums that are computed directly."""
        return self.tiles([1] * len(self.sizes)) * prod(self.windows) * self.inputs * self.blocks(self.outputs)

    def work(self, tile: Sequence[int]) -> int:
        """What it takes with tiles of so many outputs along each axis, in such products."""
        tiles, values, outputs = self.tiles(tile), prod(map(positions, tile)), self.blocks(self.outputs)
        pieces = -(-tiles // most_tiles(self.isa, self.inputs, values))
        products = (tiles + TRANSFORM_WEIGHTS * pieces) * self.inputs * outputs
        return values * (products + TRANSFORM * tiles * (self.blocks(self.inputs) + outputs))


def tile_of(known: CpuKnown, node: TypedNode) -> tuple[int, ...] | None:
    """How many outputs a tile has along each spatial axis; ``None`` for what is computed directly."""
    if node.id not in known.tiles:
        known.tiles[node.id] = _tile_of(known, node)
    return known.tiles[node.id]


def _tile_of(known: CpuKnown, node: TypedNode) -> tuple[int, ...] | None:
    op = node.op
    if not known.rounding.winograd or not isinstance(op, Conv) or op.q_output is not None or op.group != 1:
        return None
    data, weights = (known.model.outlet_fact(outlet) for outlet in node.inputs[:2])
    result = known.model.outlet_fact(node.outlets()[0])
    kinds = [known.element(fact.datum_type.storage) for fact in (data, weights, result)]
    inputs, outputs = (fact.shape[op.pool.data_format.c_axis(fact.rank)] for fact in (data, result))
    lanes, floats = known.isa.lanes(F32.bits), all(one is not None and one.computed is F32 for one in kinds)
    if not isinstance(inputs, int) or not isinstance(outputs, int) or min(inputs, outputs) < lanes:
        return None
    if not floats and (inputs % lanes or not _is_exact(known, node, op)):
        return None
    try:
        axes = op.pool.plan(op, data.shape)
    except FactError:
        return None
    if any((one.window.kernel, one.window.dilation, one.window.stride) not in _WINDOWS for one in axes):
        return None
    batch = data.shape[0] if op.pool.data_format.has_n else 1
    sizes = tuple(one.output if isinstance(one.output, int) else UNKNOWN for one in axes)
    windows = tuple(one.window.kernel for one in axes)
    layer = _Layer(known.isa, inputs, outputs, batch if isinstance(batch, int) else 1, sizes, windows)
    return _best(layer, max(PAIRS) if floats else EXACT)


_WINDOWS: Final = {(1, 1, 1), (WINDOW, 1, 1)}
"""The sizes, dilations and strides of windows that there are tiles for."""


def _is_exact(known: CpuKnown, node: TypedNode, op: Conv) -> bool:
    """Whether a convolution of integers comes out exactly: it is one of factors of 16 bits, and small enough.

    Along each axis, sums of two numbers of the data are multiplied with sums of three weights, which 16 bits have to
    hold; and results are doubled, which 32 bits have to hold. What is larger in between wraps around.
    """
    data, weights = node.inputs[:2]
    array, left, sums = known.constant_array(weights), factor_of(known, data), known.element_at(node.outlets()[0])
    if array is None or not array.size or left is None or left.range is None or sums != I32:
        return False
    ordered = op.kernel_format.to_oihw(array)
    grouping, in_tiles = grouping_of_channels(known, (data, weights), ordered, I32)
    if grouping is None or in_tiles or grouping.left != I16:
        return False
    axes = sum(window > 1 for window in ordered.shape[2:])
    factor, weight = 2**axes * left.range.most, IntegerRange(int(array.min()), int(array.max())).most
    fits = max(factor, WINDOW**axes * weight) < 2 ** (I16.bits - 1)
    return fits and factor * weight * prod(ordered.shape[1:]) < 2 ** (I32.bits - 1)


def _best(layer: _Layer, most: int) -> tuple[int, ...] | None:
    """The tile with which there is least to do, where that is much less than directly.

    ``most``: outputs along an axis.
    """
    choices = [[m for m in PAIRS if m <= most and (m > 1) == (window > 1)] for window in layer.windows]
    found = {tile: layer.work(tile) for tile in every(*choices) if prod(tile) > 1}
    best = min(found, key=lambda tile: found[tile], default=None)
    return best if best is not None and found[best] * GAIN <= layer.directly else None


def ends_of_tiles(axes: Sequence[AxisPlan], tile: Sequence[int]) -> list[tuple[Dim, Dim]]:
    """How far tiles reach beyond the data on both sides, along each axis, where the last ones are whole."""
    found: list[tuple[Dim, Dim]] = []
    for one, m in zip(axes, tile, strict=True):
        more = ceil_div(one.output, m) * m - one.output if m > 1 else 0
        found.append((one.before, one.overhang + more))
    return found


def most_tiles(isa: Isa, inputs: int, values: int) -> int:
    """How many tiles a piece has at most: their values, and sums for a run of output channels, have room."""
    lanes = isa.lanes(F32.bits)
    return max(ROOM // (F32.bytes * values * (-(-inputs // lanes) + 2) * lanes), 1)
