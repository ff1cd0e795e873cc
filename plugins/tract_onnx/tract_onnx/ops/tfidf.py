"""Runs of items, counted."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from tract_core.data import Constant
from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.onnx_only.strings import as_objects
from tract_onnx.onnx_only.tfidf import TfIdfVectorizer, Weighting
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

MAX_WIDTH: Final = 1 << 20
"""Numbers that one row may give."""


@onnx_op(ROWS, "TfIdfVectorizer", since=9)
def tfidf_vectorizer(node: OnnxNode, wire: Wiring) -> OutletId:
    """How often each known n-gram is in each row, weighted"""
    pool = _pool(node)
    lengths, places = _lengths(node, len(pool.array)), node.integers("ngram_indexes")
    weights = node.numbers("weights", ()) or (1.0,) * len(lengths)
    if len(places) != len(lengths) or len(weights) != len(lengths) or min(places, default=0) < 0:
        raise CorruptModel(
            f"the pool holds {len(lengths)} n-grams; 'ngram_indexes' has {len(places)} places and 'weights' "
            f"{len(weights)} weights, wanted as many, and no place below 0"
        )
    if max(places, default=0) >= MAX_WIDTH:
        raise LimitExceeded(f"'ngram_indexes' names place {max(places)}, the highest allowed is {MAX_WIDTH - 1}")
    shortest, longest, skip = (node.integer(name) for name in ("min_gram_length", "max_gram_length", "max_skip_count"))
    if not 0 < shortest <= longest or skip < 0:
        raise CorruptModel(f"n-grams of {shortest} to {longest} items with up to {skip} between them make no sense")
    weighting = node.member("mode", Weighting)
    # No n-gram of the pool is longer, so that looking for longer ones would find nothing.
    longest = min(longest, max(lengths, default=0))
    return wire.op(TfIdfVectorizer(pool, lengths, places, weights, weighting, shortest, longest, skip), wire.input(0))


def _pool(node: OnnxNode) -> Constant:
    integers, texts = node.integers("pool_int64s", ()), node.texts("pool_strings", ())
    if integers and texts:
        raise CorruptModel("'pool_int64s' and 'pool_strings' exclude each other")
    return Constant(as_objects(texts) if texts else np.array(integers, np.int64))


def _lengths(node: OnnxNode, size: int) -> tuple[int, ...]:
    """The number of items of each n-gram of the pool: first those of one item, then those of two, and so on."""
    starts = (*node.integers("ngram_counts"), size)
    lengths: list[int] = []
    for length, (start, end) in enumerate(pairwise(starts), 1):
        if not 0 <= start <= end or (end - start) % length:
            raise CorruptModel(
                f"'ngram_counts' is {list(starts[:-1])[:50]}, which does not divide a pool of {size} items"
            )
        lengths += [length] * ((end - start) // length)
    if starts[0] != 0:
        raise CorruptModel(f"'ngram_counts' begins with {starts[0]}, wanted 0")
    return tuple(lengths)
