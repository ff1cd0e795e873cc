"""Blocks, windows and channels as places of PyTorch in the catalogue."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry, one

ENTRIES = [
    one(lambda x: F.unfold(x, (2, 3), 1, 1, 2), "im2col", shape="S,3,6,7,f32"),
    Entry("im2col, dynamic", lambda x: F.unfold(x, 2, dilation=2), ("2,3,S,9,f32",), sizes=(5, 8)),
    one(lambda x: F.unfold(x, 2), "im2col, one item", shape="3,5,4,f32"),
    one(lambda x: F.fold(x, (4, 5), (2, 3), padding=1, stride=(2, 1)), "col2im", shape="S,12,15,f32"),
    one(lambda x: F.fold(x, (5, 6), (2, 2), dilation=2), "col2im, one item", shape="8,12,f32"),
    one(lambda x: F.fold(x, (4, 5), 2), "col2im, special", make="special", shape="S,8,12,f32"),
    Entry(
        "col2im, dynamic",
        lambda x: F.fold(x, (1, 4 * (x.shape[2] - 1) + 16), (1, 16), stride=(1, 4)),
        ("2,16,S,f32",),
    ),
    Entry("unfold", lambda x: x.unfold(1, 3, 2), ("2,S,4,f32",), sizes=(5, 8)),
    one(lambda x: x.unfold(-1, 2, 1).unfold(1, 3, 3), "unfold, twice", shape="S,6,4,f32"),
    one(lambda x: F.pixel_shuffle(x, 2), "pixel_shuffle", shape="2,8,S,3,f32"),
    one(lambda x: F.pixel_unshuffle(x, 2), "pixel_unshuffle", shape="S,2,4,6,f32"),
    one(lambda x: F.channel_shuffle(x, 2), "channel_shuffle", shape="2,8,S,3,f32"),
    one(lambda x: torch.native_channel_shuffle(x, 4), "native_channel_shuffle", shape="2,8,4,3,f32"),
]
