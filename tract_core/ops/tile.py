"""Repeat a tensor along its axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim, is_one
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, vector_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Tile(TypedOp):
    """The input repeated as a whole along each axis, as often as ``multipliers`` says."""

    multipliers: tuple[Dim, ...]

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Sizes multiplied. Raises FactError unless there is one multiplier per axis, none of them negative."""
        (x,) = arity(self, inputs, 1)
        if len(self.multipliers) != x.rank or any(not may_be_at_most(0, count) for count in self.multipliers):
            found = ", ".join(map(str, self.multipliers))
            raise FactError(f"Tile: multipliers are [{found}], wanted {x.rank} that are not negative for {x}")
        return (x.with_shape(size * count for size, count in zip(x.shape, self.multipliers, strict=True)),)


@frozen
class DynTile(TypedOp):
    """Like `Tile`, with the multipliers as a second input. ``sizes``: what the shape of the output will be."""

    sizes: tuple[Dim, ...]
    announces: ClassVar[tuple[str, ...]] = ("sizes",)
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of ``sizes``. Raises FactError unless the multipliers are one integer per axis."""
        x, multipliers = arity(self, inputs, 2)
        vector_of(self, multipliers, x.rank, "multipliers")
        if len(self.sizes) != x.rank:
            raise FactError(f"DynTile: {len(self.sizes)} sizes were announced for {x}, of rank {x.rank}")
        return (x.with_shape(self.sizes),)


@ROWS.row(REFERENCE, Tile)
@ROWS.row(SYMBOLIC, Tile)
def tile(op: Tile, x: Array) -> Array:
    """numpy.tile"""
    return np.tile(x, [int(count) for count in op.multipliers])


@ROWS.row(REFERENCE, DynTile)
@ROWS.row(SYMBOLIC, DynTile)
def dyn_tile(op: DynTile, x: Array, multipliers: Array) -> Array:
    """numpy.tile"""
    counts = counts_of(multipliers)
    check_tensor((size * count for size, count in zip(x.shape, counts, strict=True)), x.itemsize)
    return np.tile(x, counts)


def counts_of(multipliers: Array) -> list[int]:
    """How often each axis is repeated. Raises RunError where that is less than not at all."""
    counts = [int(count) for count in multipliers]
    if any(count < 0 for count in counts):
        raise RunError(f"multipliers are {counts}, wanted none that is negative")
    return counts


@ROWS.row(COST, Tile, DynTile)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Tile)
def tile_axes(op: Tile, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; a repeated one is disconnected."""
    repeated = [axis for axis, count in enumerate(op.multipliers) if not is_one(count)]
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], repeated)


@ROWS.row(AXES, DynTile)
def dyn_tile_axes(op: DynTile, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: any axis may be repeated."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
