"""Attention of tokens over the pages that they meet."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from tract_transformers.metal.places import Places
from tract_transformers.ops.paged_attention import PagedAttention


def attended(
    op: PagedAttention, queries: mx.array, kept: Sequence[mx.array], places: Places, sinks: mx.array | None
) -> mx.array:
    """[T,H,G,V] for queries [T,H,G,D], keys [N,page,H,D], values [N,page,H,V] and sinks [H,G].

    ``kept``: keys, values, and scales [N,page,H] of each, if there are any.

    What no token sees counts as 0 among the values: others left it there, and 0 times what is no number is none.
    """
    tokens, heads, shared, depth = queries.shape
    keys, values, *scales = (_met(one, places.met) for one in kept)
    if scales:
        keys, values = (one * scale for one, scale in zip((keys, values), scales, strict=True))
    there = mx.any(places.seen, axis=1)
    values = mx.where(there[:, None, :, None], values, 0)
    q = queries[:, :, :, None] if places.each_alone else mx.transpose(queries, (1, 2, 0, 3))[None]
    if op.cap is None:
        q = mx.reshape(q, (q.shape[0], heads * shared, -1, depth))
        one_for_each = None if sinks is None else mx.reshape(sinks, (-1,))
        found = mx.fast.scaled_dot_product_attention(
            q, keys, values, scale=op.scale, mask=places.seen[:, None], sinks=one_for_each
        )
    else:
        scores = mx.matmul(q, mx.swapaxes(keys, 2, 3)[:, :, None]) * op.scale
        scores = mx.tanh(scores * (1 / op.cap)) * op.cap
        found = _mixed(mx.where(places.seen[:, None, None], scores, -mx.inf), values, sinks)
    if places.each_alone:
        return mx.reshape(found, (tokens, heads, shared, -1))
    return mx.transpose(mx.reshape(found, (heads, shared, tokens, -1)), (2, 0, 1, 3))


def _met(kept: mx.array, pages: mx.array) -> mx.array:
    """Of pages [N,page,H,D], those of the numbers [B,K]: [B,H,K*page,D] in f32, of which D is 1 for scales."""
    found = mx.take(kept, pages, axis=0)
    found = mx.reshape(found, (found.shape[0], -1, kept.shape[2], kept.shape[3] if kept.ndim == 4 else 1))
    return mx.transpose(found, (0, 2, 1, 3)).astype(mx.float32)


def _mixed(scores: mx.array, values: mx.array, sinks: mx.array | None) -> mx.array:
    """[B,H,G,n,V]: values [B,H,L,V] by the softmax of scores [B,H,G,n,L], each beside that of its sink [H,G]."""
    largest = mx.max(scores, axis=-1, keepdims=True)
    nothing = None if sinks is None else sinks[None, :, :, None, None]
    if nothing is not None:
        largest = mx.maximum(largest, nothing)
    powers = mx.exp(scores - largest)
    total = mx.sum(powers, axis=-1, keepdims=True)
    if nothing is not None:
        total = total + mx.exp(nothing - largest)
    return mx.matmul(powers / total, values[:, :, None])
