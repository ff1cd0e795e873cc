"""Elements and slices written to positions that a tensor holds.

Of several writes to one place, GPUs keep any; so that the last one holds, the largest number of a write is found first.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final

import mlx.core as mx

from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.layout import places_along
from tract_metal.lower.binary import FLOATS
from tract_metal.lower.extremes import keys_of, of_keys
from tract_metal.lower.gather import inside, numbered
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()

_EXTREMES: Final = ("min", "max")


@ROWS.row(METAL, ScatterElements)
def lower_scatter_elements(op: ScatterElements, site: Site) -> Callable[..., mx.array] | str:
    """Each element is a write of its own."""
    why = _why_not(op, site)
    if why is not None:
        return why

    def written(x: mx.array, indices: mx.array, updates: mx.array) -> mx.array:
        places = mx.zeros(indices.shape, mx.int64)
        for axis, size in enumerate(x.shape):
            here = inside(site, indices, size) if axis == op.axis else places_along(indices, axis)
            places = places * size + here
        if 0 in (x.size, indices.size):
            return x
        flat = _write(op.reduction, mx.reshape(x, (-1, 1)), mx.reshape(places, (-1,)), mx.reshape(updates, (-1, 1)))
        return mx.reshape(flat, x.shape)

    return written


@ROWS.row(METAL, ScatterNd)
def lower_scatter_nd(op: ScatterNd, site: Site) -> Callable[..., mx.array] | str:
    """Each slice is a write."""
    why = _why_not(op, site)
    if why is not None:
        return why

    def written(x: mx.array, indices: mx.array, updates: mx.array) -> mx.array:
        places = numbered(site, x.shape, indices)
        if 0 in (x.size, indices.size):
            return x
        depth = indices.shape[-1]
        count, width = prod(x.shape[:depth]), prod(x.shape[depth:])
        flat = mx.reshape(x, (count, width))
        found = _write(op.reduction, flat, mx.reshape(places, (-1,)), mx.reshape(updates, (-1, width)))
        return mx.reshape(found, x.shape)

    return written


def _why_not(op: ScatterElements | ScatterNd, site: Site) -> str | None:
    if op.reduction != "none" and site.facts[0].datum_type.is_bool():
        return "MLX does not combine truths"
    if op.reduction != "none" and site.facts[0].datum_type.itemsize > 4:
        return "GPUs of Apple do not combine 8 bytes at once"
    return None


def _write(reduction: str, x: mx.array, places: mx.array, updates: mx.array) -> mx.array:
    """``x``: [slices, width]; ``places``: [writes]; ``updates``: [writes, width]."""
    if reduction == "none":
        numbers = mx.arange(places.size, dtype=mx.int32)
        last = mx.full((x.shape[0],), -1, mx.int32).at[places].maximum(numbers)
        return mx.where((last >= 0)[:, None], mx.take(updates, mx.maximum(last, 0), axis=0), x)
    if reduction in _EXTREMES and x.dtype in FLOATS:
        least = reduction == "min"
        x_keys, keys = (keys_of(one, least=least) for one in (x, updates))
        return of_keys(_combined(reduction, x_keys, places, keys), x.dtype, least=least)
    return _combined(reduction, wide(x), places, wide(updates)).astype(x.dtype)


def _combined(reduction: str, x: mx.array, places: mx.array, updates: mx.array) -> mx.array:
    at = x.at[places]
    return {"add": at.add, "mul": at.multiply, "min": at.minimum, "max": at.maximum}[reduction](updates)
