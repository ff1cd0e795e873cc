"""One place of an axis told from the others."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.one_hot import OneHot
from tract_core.plugins.tables import Rows
from tract_metal.elements import written_in
from tract_metal.layout import along
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, OneHot)
def lower_one_hot(op: OneHot, site: Site) -> Callable[[mx.array], mx.array]:
    """On where the place is the index, else off"""

    def told(indices: mx.array) -> mx.array:
        size = int(op.dim)
        found = mx.expand_dims(indices.astype(mx.int64), op.axis)
        found = mx.where(found < 0, found + size, found)
        hit = found == along(mx.arange(size, dtype=mx.int64), op.axis, found.ndim)
        on, off = (written_in(one.array) for one in (op.on, op.off))
        return mx.where(hit, on, off)

    return told
