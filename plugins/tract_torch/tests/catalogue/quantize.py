"""Rounding to few numbers, as training for it does, in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import Entry

ENTRIES = [
    Entry(
        "fake_quantize_per_tensor_affine",
        lambda x: (
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -10, 9),
            torch.fake_quantize_per_tensor_affine(x, scale=0.3, zero_point=0, quant_min=0, quant_max=9),
        ),
        ("S,3,f32",),
    ),
    Entry(
        "fake_quantize_per_tensor_affine, tensors",
        lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, s[0], z[0], -10, 9),
        ("S,3,f32", "1,f32:positive", "1,i32"),
    ),
    Entry(
        "fake_quantize_per_channel_affine",
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 1, -10, 9),
        ("S,3,2,f32", "3,f32:positive", "3,i32"),
    ),
]
