"""How often runs of items are there."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.tfidf import TfIdfVectorizer
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, TfIdfVectorizer)
def tfidf(op: TfIdfVectorizer, node: Spelling) -> str | None:
    """TfIdfVectorizer, whose pool has the short runs first"""
    lengths = list(op.lengths)
    if lengths != sorted(lengths):
        return None
    longest = max(lengths, default=1)
    starts = [sum(one for one in lengths if one < length) for length in range(1, longest + 1)]
    items = op.pool.array.tolist()
    is_text = op.pool.array.dtype.kind == "O"
    return node.add(
        "TfIdfVectorizer",
        node.input(),
        **{"pool_strings" if is_text else "pool_int64s": items},
        ngram_counts=starts,
        ngram_indexes=list(op.places),
        weights=list(op.weights),
        mode=op.weighting.value,
        min_gram_length=op.min_length,
        max_gram_length=op.max_length,
        max_skip_count=op.max_skip,
    )
