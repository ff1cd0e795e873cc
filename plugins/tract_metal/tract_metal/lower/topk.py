"""The largest or smallest elements of an axis."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.layout import places_along
from tract_metal.lower.binary import FLOATS
from tract_metal.lower.extremes import keys_of
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Topk)
def lower_topk(op: Topk, site: Site) -> Callable[..., tuple[mx.array, mx.array]] | str:
    """By keys of 64 bits, the element above and its place below, as MLX leaves the order of equals open."""
    if site.facts[0].datum_type.itemsize > 4 or site.facts[0].datum_type.is_bool():
        return "keys of elements and places do not fit into 64 bits"

    def best(x: mx.array, k: mx.array) -> tuple[mx.array, mx.array]:
        count = int(op.k)
        site.refuse_where(k.astype(mx.int64) != count)
        if x.size == 0 or not count:
            return mx.zeros(site.shape(0), x.dtype), mx.zeros(site.shape(1), mx.int64)
        order = _ordered(x)
        order = ((-1 - order) if op.largest else order) * (1 << 32)
        keys = mx.sort(order + places_along(x, op.axis), axis=op.axis)
        found = keys[(*(slice(None),) * op.axis, slice(0, count))] & ((1 << 32) - 1)
        return mx.take_along_axis(x, found, axis=op.axis), found

    return best


def _ordered(x: mx.array) -> mx.array:
    """Integers of 32 bits, as i64, in the order of the elements, both zeros the same; no number is the largest one."""
    if x.dtype not in FLOATS:
        return x.astype(mx.int64)
    data = wide(x)
    return keys_of(mx.where(data == 0, mx.zeros_like(data), data), least=False).astype(mx.int64)
