"""Attention by MLX's own function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import mlx.core as mx

from tract_core.plugins.tables import Rows
from tract_metal.group.attention import Attention
from tract_metal.site import Site
from tract_metal.table import KINDS

ROWS = Rows()


@ROWS.row(KINDS, Attention)
def lower_attention(group: Attention, site: Site) -> Callable[..., mx.array]:
    """Axes of the batch become one, those of queries another one."""
    queries, keys, values, scores, result = group.axes.terms
    key, depth, width, alone = group.axes.key, group.axes.depth, group.axes.width, group.axes.alone
    assert depth is not None, "it was looked at"
    assert width is not None, "it was looked at"
    batch = tuple(name for name in scores if name not in (*alone, key))

    def attended(*arrays: mx.array) -> mx.array:
        given = dict(zip(site.inputs, arrays, strict=True))
        q, k, v = (given[outlet] for outlet in group.axes.factors)
        sizes = _sizes(((q, queries), (k, keys), (v, values)))
        count, rows = (prod(sizes[name] for name in names) for names in (batch, alone))
        shape = (*(sizes[name] for name in batch), *(sizes[name] for name in alone), sizes[width])
        if 0 in (*shape, sizes[key]):  # of no keys, the sum of no values is 0
            return _named(mx.zeros(shape, q.dtype), (*batch, *alone, width), result)
        q = _matrices(q, queries, (*batch, *alone, depth), sizes, (1, count, rows, sizes[depth]))
        k = _matrices(k, keys, (*batch, key, depth), sizes, (1, count, sizes[key], sizes[depth]))
        v = _matrices(v, values, (*batch, key, width), sizes, (1, count, sizes[key], sizes[width]))
        mask = None if group.mask is None else given[group.mask]
        if mask is not None:
            mask = _matrices(mask, scores, (*batch, *alone, key), sizes, (1, count, rows, sizes[key]))
        if sizes[depth] == 0:  # all products are 0
            q, k = (mx.zeros((*one.shape[:-1], 1), one.dtype) for one in (q, k))
        found = mx.fast.scaled_dot_product_attention(q, k, v, scale=group.scale, mask=mask)
        return _named(mx.reshape(found, shape), (*batch, *alone, width), result)

    return attended


def _sizes(factors: Sequence[tuple[mx.array, Sequence[str]]]) -> dict[str, int]:
    """The size of each axis, which is that of any factor that is not stretched along it."""
    found: dict[str, int] = {}
    for array, term in factors:
        for name, size in zip(term, array.shape, strict=True):
            found[name] = size if found.get(name, 1) == 1 else found[name]
    return found


def _matrices(
    x: mx.array, term: Sequence[str], names: Sequence[str], sizes: dict[str, int], shape: Sequence[int]
) -> mx.array:
    """A tensor with all of these axes, stretched where it lacks one, as matrices."""
    order = [term.index(name) for name in names if name in term]
    laid = mx.transpose(x, [*order, *(axis for axis in range(x.ndim) if axis not in order)])
    present = iter(laid.shape)
    laid = mx.reshape(laid, [next(present) if name in term else 1 for name in names])
    return mx.reshape(mx.broadcast_to(laid, [sizes[name] for name in names]), shape)


def _named(x: mx.array, names: Sequence[str], result: Sequence[str]) -> mx.array:
    """With the axes of the result in its order; others have size 1."""
    kept = [axis for axis, name in enumerate(names) if name in result]
    x = mx.reshape(x, [x.shape[axis] for axis in kept])
    there = [names[axis] for axis in kept]
    return mx.transpose(x, [there.index(name) for name in result])
