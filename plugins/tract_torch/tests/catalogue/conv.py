"""Convolutions of PyTorch in the catalogue."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

LINE, IMAGE, VOLUME = "2,4,S,f32", "S,4,8,9,f32", "1,2,S,6,7,f32"


def conv(name: str, *inputs: str, make: str = "normal", **options: Any) -> Entry:
    """A convolution by the name of its function."""
    function = getattr(F, name.partition(",")[0])
    return Entry(name, lambda *given: function(*given, **options), inputs, make, 2e-5, sizes=(5, 9))


ENTRIES = [
    conv("conv1d", LINE, "6,4,3,f32", "6,f32"),
    conv("conv1d, same", LINE, "6,4,4,f32", padding="same", dilation=2),
    conv("conv1d, valid", LINE, "6,4,2,f32", padding="valid", stride=2),
    conv("conv1d, f64", "2,4,S,f64", "6,4,2,f64", "6,f64"),
    conv("conv1d, integers", "2,4,S,i64", "6,4,2,i64", "6,i64"),
    conv("conv2d", "2,4,S,9,f32", "4,4,3,3,f32", stride=2, padding=1),
    conv("conv2d, groups", IMAGE, "6,2,3,3,f32", groups=2, dilation=(2, 1)),
    conv("conv2d, each channel", IMAGE, "8,1,3,2,f32", "8,f32", groups=4, padding=(2, 0)),
    conv("conv2d, same", IMAGE, "4,4,2,3,f32", padding="same"),
    conv("conv2d, one item", "4,S,9,f32", "4,4,3,3,f32", "4,f32"),
    conv("conv2d, bf16", "S,2,4,5,bf16", "3,2,2,2,bf16", make="integers"),
    conv("conv3d", VOLUME, "3,2,2,2,2,f32", "3,f32", stride=(1, 2, 1), padding=(0, 1, 1)),
    conv("conv3d, same", VOLUME, "2,1,3,2,1,f32", padding="same", groups=2),
    Entry(
        "conv1d, a kernel that is computed",
        lambda x, w: F.conv1d(x, w.softmax(-1)),
        (LINE, "6,4,3,f32"),
        sizes=(5, 9),
    ),
    Entry("conv_tbc", lambda x, w, b: torch.conv_tbc(x, w, b, 1), ("S,2,4,f32", "3,4,5,f32", "5,f32"), tolerance=2e-5),
]
