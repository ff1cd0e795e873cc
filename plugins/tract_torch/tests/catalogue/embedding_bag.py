"""Rows of a table joined by groups, of PyTorch in the catalogue."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

TABLE, FLAT = "5,4,f32", "S,i64:below 5"


def bags(mode: str, **options: Any) -> Any:
    """Three bags, the second one empty."""
    ends = [0, 2, 2, 3] if options.get("include_last_offset") else [0, 2, 2]
    return lambda table, x: F.embedding_bag(x, table, torch.tensor(ends), mode=mode, **options)


ENTRIES = [
    *(Entry(f"embedding_bag, {mode}", bags(mode), (TABLE, FLAT)) for mode in ("sum", "mean", "max")),
    *(
        Entry(f"embedding_bag, {mode}, padding", bags(mode, padding_idx=1), (TABLE, FLAT))
        for mode in ("sum", "mean", "max")
    ),
    *(
        Entry(
            f"embedding_bag, {mode}, rows",
            lambda table, x, mode=mode: F.embedding_bag(x, table, mode=mode),
            (TABLE, "S,3,i64:below 5"),
        )
        for mode in ("sum", "mean", "max")
    ),
    Entry("embedding_bag, all offsets", bags("mean", include_last_offset=True), (TABLE, "3,i64:below 5")),
    Entry(
        "embedding_bag, weights",
        lambda table, x, w: F.embedding_bag(x, table, torch.tensor([0, 1]), mode="sum", per_sample_weights=w),
        (TABLE, FLAT, "S,f32"),
    ),
    Entry("embedding_bag, f16", bags("mean"), ("5,4,f16", FLAT), tolerance=2e-3),
]
