"""Products whose matrix is chosen for each row."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import mlx.core as mx

from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.lower.gather import inside
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()

SORTED: Final = 64
"""From how many rows on they are put in order before, so that those of one matrix are multiplied together."""


@ROWS.row(METAL, IndexedMatMul)
def lower_indexed_matmul(op: IndexedMatMul, site: Site) -> Callable[..., mx.array]:
    """By MLX's own, which sums in f32, and on the processor multiplies nothing else."""

    def multiplied(x: mx.array, weights: mx.array, which: mx.array) -> mx.array:
        on_gpu = mx.default_device() == mx.Device(mx.gpu)

        def product(rows: mx.array, **chosen: Any) -> mx.array:
            a, b = (one if on_gpu else wide(one) for one in (rows, weights))
            return mx.gather_mm(a, mx.swapaxes(b, 1, 2), **chosen)

        return chosen_product(site, product, weights.shape, (x, which))

    return multiplied


def chosen_product(
    site: Site, product: Callable[..., mx.array], shape: tuple[int, ...], inputs: tuple[mx.array, mx.array]
) -> mx.array:
    """Each row times the matrix that it chose. ``shape``: of all matrices; ``inputs``: rows, and what they choose.

    ``product``: takes rows [n,1,depth], and MLX's arguments of products whose matrices are chosen.
    """
    x, which = inputs
    choice = mx.reshape(inside(site, which, shape[0]), (-1,)).astype(mx.uint32)
    depth, result = x.shape[-1], (*which.shape, shape[1])
    if 0 in (*result, *shape):
        return mx.zeros(result, x.dtype)
    places = _places(x.shape[:-1], which.shape)
    in_order = choice.size >= SORTED
    order = mx.argsort(choice) if in_order else None
    if order is not None:
        choice, places = mx.take(choice, order), mx.take(places, order)
    rows = mx.take(mx.reshape(x, (-1, 1, depth)), places, axis=0)
    found = mx.reshape(product(rows, rhs_indices=choice, sorted_indices=in_order), (-1, shape[1]))
    if order is not None:
        found = mx.take(found, mx.argsort(order), axis=0)
    return mx.reshape(found, result).astype(x.dtype)


def _places(shape: tuple[int, ...], wanted: tuple[int, ...]) -> mx.array:
    """For each place of a tensor of the shape ``wanted``, in order, which row of one that is stretched to it."""
    rows = mx.reshape(mx.arange(prod(shape), dtype=mx.int32), shape)
    return mx.reshape(mx.broadcast_to(rows, wanted), (-1,))
