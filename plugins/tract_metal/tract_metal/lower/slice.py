"""Parts of axes."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.slice import DynSlice, Slice
from tract_core.plugins.tables import Rows
from tract_metal.lower.downsample import taken
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Slice)
def lower_slice(op: Slice, site: Site) -> Computed:
    """x[start:end]"""
    return laid(lambda x: taken(x, op.axis, slice(int(op.start), int(op.end))))


@ROWS.row(METAL, DynSlice)
def lower_dyn_slice(op: DynSlice, site: Site) -> Callable[..., mx.array]:
    """x[start:end], where the length is known."""

    def cut(x: mx.array, start: mx.array, end: mx.array) -> mx.array:
        size, length = x.shape[op.axis], int(op.length)
        start, end = start.astype(mx.int64), end.astype(mx.int64)
        site.refuse_where((start < 0) | (end > size) | (end - start != length))
        places = mx.clip(start + mx.arange(length, dtype=mx.int64), 0, max(size - 1, 0))
        return mx.take(x, places, axis=op.axis)

    return cut
