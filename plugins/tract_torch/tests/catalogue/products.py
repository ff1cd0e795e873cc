"""Convolutions and attention of PyTorch in the catalogue."""

from __future__ import annotations

from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

ENTRIES = [
    Entry("conv1d", F.conv1d, ("2,3,9,f32", "4,3,3,f32", "4,f32")),
    Entry("conv2d", lambda x, w: F.conv2d(x, w, stride=2, padding=1), ("S,3,8,9,f32", "4,3,3,3,f32")),
    Entry("conv2d, groups", lambda x, w: F.conv2d(x, w, groups=3, dilation=2), ("S,3,8,9,f32", "6,1,3,3,f32")),
    Entry("conv2d, same", lambda x, w: F.conv2d(x, w, padding="same"), ("S,3,8,9,f32", "4,3,3,3,f32")),
    Entry("conv3d", F.conv3d, ("1,2,5,6,7,f32", "3,2,2,2,2,f32")),
    Entry(
        "conv_transpose2d",
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        ("S,4,5,6,f32", "4,3,3,3,f32"),
    ),
    Entry(
        "conv_transpose1d, groups",
        lambda x, w: F.conv_transpose1d(x, w, stride=2, groups=2),
        ("2,4,5,f32", "4,3,3,f32"),
    ),
    Entry("conv2d of one item", F.conv2d, ("3,8,9,f32", "4,3,3,3,f32")),
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
