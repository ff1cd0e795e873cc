"""One place of an axis told from the others."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import numpy as np

from tract_core.ops.one_hot import OneHot
from tract_core.plugins.tables import Rows
from tract_metal.elements import to_mlx
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
        shape = [size if axis == op.axis else 1 for axis in range(found.ndim)]
        hit = found == mx.reshape(mx.arange(size, dtype=mx.int64), shape)
        on, off = (to_mlx(np.ascontiguousarray(one.array)) for one in (op.on, op.off))
        return mx.where(hit, on, off)

    return told
