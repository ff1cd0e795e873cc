"""Tensors repeated as a whole."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.tile import Tile
from tract_core.plugins.tables import Rows
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Tile)
def lower_tile(op: Tile, site: Site) -> Callable[[mx.array], mx.array]:
    """As often as the multipliers say; none of it where one is 0."""

    def tiled(x: mx.array) -> mx.array:
        counts = [int(count) for count in op.multipliers]
        return mx.tile(x, counts) if all(counts) else mx.zeros(site.shape(), x.dtype)

    return tiled
