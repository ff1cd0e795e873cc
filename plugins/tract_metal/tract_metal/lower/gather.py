"""Elements and slices at positions that a tensor holds. MLX reads whatever lies there when a position is outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import mlx.core as mx

from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


def inside(site: Site, indices: mx.array, size: int) -> mx.array:
    """Positions in i64, negative ones counted from the end. A turn with one outside is refused."""
    found = indices.astype(mx.int64)
    site.refuse_where((found < -size) | (found >= size))
    return mx.clip(mx.where(found < 0, found + size, found), 0, max(size - 1, 0))


@ROWS.row(METAL, Gather)
def lower_gather(op: Gather, site: Site) -> Callable[..., mx.array]:
    """Slices along an axis."""

    def taken(x: mx.array, indices: mx.array) -> mx.array:
        places = inside(site, indices, x.shape[op.axis])
        if 0 in (*x.shape, indices.size):
            return mx.zeros(site.shape(), x.dtype)
        return mx.take(x, places, axis=op.axis)

    return taken


@ROWS.row(METAL, GatherElements)
def lower_gather_elements(op: GatherElements, site: Site) -> Callable[..., mx.array]:
    """One element for each position."""

    def taken(x: mx.array, indices: mx.array) -> mx.array:
        places = inside(site, indices, x.shape[op.axis])
        if 0 in (*x.shape, indices.size):
            return mx.zeros(site.shape(), x.dtype)
        return mx.take_along_axis(_as_long(x, op.axis, indices.shape), places, axis=op.axis)

    return taken


def _as_long(x: mx.array, axis: int, shape: Sequence[int]) -> mx.array:
    """Without what lies beyond the positions along the other axes."""
    return x[tuple(slice(None) if other == axis else slice(size) for other, size in enumerate(shape))]


@ROWS.row(METAL, GatherNd)
def lower_gather_nd(op: GatherNd, site: Site) -> Callable[..., mx.array]:
    """Slices at coordinates."""

    def taken(x: mx.array, indices: mx.array) -> mx.array:
        places = numbered(site, x.shape, indices, op.batch_dims)
        if 0 in (*x.shape, indices.size):
            return mx.zeros(site.shape(), x.dtype)
        depth = op.batch_dims + indices.shape[-1]
        flat = mx.reshape(x, (prod(x.shape[:depth]), *x.shape[depth:]))
        return mx.take(flat, places, axis=0)

    return taken


def numbered(site: Site, shape: Sequence[int], indices: mx.array, batch_dims: int = 0) -> mx.array:
    """Coordinates in the last axis of ``indices`` as one number each, that of the slice among all, in order."""
    sizes = shape[batch_dims : batch_dims + indices.shape[-1]]
    found = mx.zeros(indices.shape[:-1], mx.int64)
    for axis, size in enumerate(sizes):
        found = found * size + inside(site, indices[..., axis], size)
    extra = indices.ndim - 1 - batch_dims
    for axis in range(batch_dims):
        along = [shape[axis] if other == axis else 1 for other in range(batch_dims)]
        step = prod(shape[axis + 1 : batch_dims]) * prod(sizes)
        found = found + mx.reshape(mx.arange(shape[axis], dtype=mx.int64), (*along, *(1,) * extra)) * step
    return found
