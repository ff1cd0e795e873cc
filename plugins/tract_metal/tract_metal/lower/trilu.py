"""Triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Trilu)
def lower_trilu(op: Trilu, site: Site) -> Callable[..., mx.array]:
    """X on one side of a diagonal, else 0"""

    def triangle(x: mx.array, k: mx.array) -> mx.array:
        rows, columns = x.shape[-2:]
        distance = mx.arange(columns, dtype=mx.int64) - mx.arange(rows, dtype=mx.int64)[:, None]
        kept = distance >= k.astype(mx.int64) if op.upper else distance <= k.astype(mx.int64)
        return mx.where(kept, x, mx.zeros_like(x))

    return triangle
