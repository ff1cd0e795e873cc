"""Attention of PyTorch in the catalogue."""

from __future__ import annotations

from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

ENTRIES = [
    Entry("attention", F.scaled_dot_product_attention, ("2,3,S,4,f32", "2,3,5,4,f32", "2,3,5,4,f32")),
    Entry(
        "attention, causal",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ("2,3,5,4,f32", "2,3,5,4,f32", "2,3,5,4,f32"),
    ),
    Entry(
        "attention, grouped",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        ("2,4,S,4,f32", "2,2,5,4,f32", "2,2,5,4,f32"),
    ),
]
