"""Which convolutions take fewer products by Winograd's method, and in which tiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as every
from math import prod
from typing import Final

from tract_llvm.isa import Isa
from tract_llvm.language.types import F32

from tract_core.dims import Dim, ceil_div
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.typed import TypedNode
from tract_core.ops.conv import Conv
from tract_core.ops.pool_spec import AxisPlan
from tract_cpu.group.known import CpuKnown
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
    op = node.op
    if not known.winograd or not isinstance(op, Conv) or op.q_output is not None or op.group != 1:
        return None
    data, weights = (known.model.outlet_fact(outlet) for outlet in node.inputs[:2])
    result = known.model.outlet_fact(node.outlets()[0])
    kinds = [known.element(fact.datum_type.storage) for fact in (data, weights, result)]
    inputs, outputs = (fact.shape[op.pool.data_format.c_axis(fact.rank)] for fact in (data, result))
    lanes = known.isa.lanes(F32.bits)
    if any(one is None or one.computed is not F32 for one in kinds):
        return None
    if not isinstance(inputs, int) or not isinstance(outputs, int) or min(inputs, outputs) < lanes:
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
    return _best(_Layer(known.isa, inputs, outputs, batch if isinstance(batch, int) else 1, sizes, windows))


_WINDOWS: Final = {(1, 1, 1), (WINDOW, 1, 1)}
"""The sizes, dilations and strides of windows that there are tiles for."""


def _best(layer: _Layer) -> tuple[int, ...] | None:
    """The tile with which there is least to do, where that is much less than directly."""
    choices = [[m for m in PAIRS if (m > 1) == (window > 1)] for window in layer.windows]
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
