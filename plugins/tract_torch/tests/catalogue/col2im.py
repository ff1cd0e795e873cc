"""Blocks of images of PyTorch in the catalogue."""

from __future__ import annotations

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
]
