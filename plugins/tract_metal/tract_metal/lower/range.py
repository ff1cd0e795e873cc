"""Numbers in even steps."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Range)
def lower_range(op: Range, site: Site) -> Callable[..., mx.array] | str:
    """Of integers, where it is known how many there are."""
    if site.facts[0].datum_type.is_float():
        return "how many floats there are is found in f64"

    def numbers(start: mx.array, end: mx.array, step: mx.array) -> mx.array:
        length = int(op.length)
        first, last, stride = (one.astype(mx.int64) for one in (start, end, step))
        reach = mx.where(stride == 0, mx.array(0, mx.int64), last - first)
        up = (first + stride * (length - 1) < last) & (first + stride * length >= last)
        down = (first + stride * (length - 1) > last) & (first + stride * length <= last)
        none = mx.where(stride > 0, reach <= 0, reach >= 0)
        right = mx.where(stride > 0, up, down) if length else none
        site.refuse_where((stride == 0) | mx.logical_not(right))
        return start + (mx.arange(length, dtype=mx.int64) * stride).astype(start.dtype)

    return numbers
