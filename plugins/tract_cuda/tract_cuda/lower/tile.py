"""Repeated tensors: one copy, of a tensor that repeats as its strides are 0."""

from __future__ import annotations

from dataclasses import replace

from tract_core.dims import is_one
from tract_core.ops.tile import Tile
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, Tile)
def lower_tile(op: Tile, site: Site) -> None:
    """A view where nothing is repeated but axes of size 1."""
    (x,) = site.inputs()
    if all(is_one(count) or is_one(size) for count, size in zip(op.multipliers, x.shape, strict=True)):
        site.place(x.stretched(tuple(site.node.facts[0].shape)))
        return
    (result,) = site.results()
    shape = tuple(one for pair in zip(op.multipliers, x.shape, strict=True) for one in pair)
    repeated = replace(x, shape=shape, strides=tuple(one for stride in x.strides for one in (0, stride)))
    for axis in reversed(range(len(x.shape))):
        result = result.split(axis, (op.multipliers[axis], x.shape[axis]))
    site.lowering.copy(repeated, result, site.group.nodes)
