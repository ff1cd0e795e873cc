"""Pools of PyTorch in the catalogue."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

LINE, IMAGE, VOLUME = "2,3,S,f32", "2,3,S,9,f32", "2,3,S,7,8,f32"


def places(name: str, *inputs: str, **options: Any) -> Entry:
    """A pool by the name of its function, which also gives where the largest elements are."""
    function, case = getattr(F, name.partition(",")[0]), options.pop("case", {})
    return Entry(name, lambda x: function(x, return_indices=True, **case), inputs, sizes=(5, 9), **options)


def pool(name: str, shape: str, *given: Any, make: str = "normal", **options: Any) -> Entry:
    """A pool by the name of its function."""
    function = getattr(F, name.partition(",")[0])
    return Entry(name, lambda x: function(x, *given, **options), (shape,), make, sizes=(5, 9))


ENTRIES = [
    pool("max_pool1d", LINE, 3, 2),
    pool("max_pool1d, one item", "3,S,f32", 2),
    pool("max_pool1d, dilation", LINE, 2, 1, dilation=2, padding=1),
    pool("max_pool2d", IMAGE, 2),
    pool("max_pool2d, ceil", "S,2,6,7,f32", 3, 2, 1, ceil_mode=True),
    pool("max_pool2d, ceil where the last window is left out", "S,2,5,7,f32", 1, 3, ceil_mode=True),
    pool("max_pool2d, dilation", IMAGE, (3, 2), 1, padding=1, dilation=(2, 3)),
    pool("max_pool2d, special", "S,3,6,8,f32", 3, 2, 1, make="special"),
    pool("max_pool2d, integers", "S,3,6,8,i64", 3, 2, 1),
    pool("max_pool2d, f16", "S,3,6,8,f16", 3, 2, 1),
    pool("max_pool2d, one item", "3,S,7,f32", 2),
    pool("max_pool3d", VOLUME, 2, 2, (1, 0, 1)),
    places("max_pool1d, places", LINE, case={"kernel_size": 3, "padding": 1}),
    places("max_pool2d, places", IMAGE, case={"kernel_size": 3, "stride": 2, "padding": 1}),
    places("max_pool2d, places of equals", IMAGE, case={"kernel_size": 3, "stride": 1}, make="integers"),
    places("max_pool2d, places in one item", "3,S,7,f32", case={"kernel_size": 2}),
    places("max_pool3d, places", VOLUME, case={"kernel_size": 2, "dilation": 2}),
    Entry("max_pool2d of negative infinities", lambda x: F.max_pool2d(x - torch.inf, 2, 1, 1), ("S,2,3,4,f32",)),
    Entry(
        "max_unpool1d",
        lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2),
        ("S,3,8,f32",),
    ),
    Entry(
        "max_unpool2d",
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 3, 2, return_indices=True), 3, 2, output_size=x.shape[-2:]),
        ("S,3,8,6,f32",),
    ),
    Entry(
        "max_unpool3d",
        lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2),
        ("2,3,S,6,6,f32",),
        sizes=(4, 8),
    ),
    pool("avg_pool1d", LINE, 2),
    pool("avg_pool1d, ceil", "S,3,8,f32", 3, 2, 1, ceil_mode=True),
    pool("avg_pool2d", IMAGE, 3, 2, 1),
    pool("avg_pool2d, without pads", IMAGE, 3, 2, 1, count_include_pad=False),
    pool("avg_pool2d, ceil", "S,2,6,7,f32", 3, 2, 1, ceil_mode=True),
    pool("avg_pool2d, ceil, without pads", "S,2,6,8,f32", (3, 2), 3, 1, ceil_mode=True, count_include_pad=False),
    pool("avg_pool2d, divisor", IMAGE, 3, 2, 1, divisor_override=5),
    pool("avg_pool2d, divisor, f16", "S,2,6,8,f16", 3, 2, 1, divisor_override=5),
    pool("avg_pool3d", VOLUME, 2, 2, 1, count_include_pad=False),
    pool("avg_pool3d, ceil", "S,2,4,5,6,f32", 3, 2, 1, ceil_mode=True),
    pool("lp_pool1d", LINE, 2, 3, 2),
    pool("lp_pool2d", IMAGE, 3, 3, 2, make="positive"),
    pool("lp_pool3d", VOLUME, 2, 2),
    pool("adaptive_avg_pool1d", LINE, 4),
    pool("adaptive_avg_pool1d, one item", "3,S,f32", 4),
    pool("adaptive_avg_pool2d, 1", IMAGE, 1),
    pool("adaptive_avg_pool2d, even", "S,2,6,8,f32", (3, 2)),
    pool("adaptive_avg_pool2d, overlapping evenly", "S,2,7,5,f32", (3, 2)),
    pool("adaptive_avg_pool2d, uneven", "S,2,7,5,f32", (4, 3)),
    pool("adaptive_avg_pool2d, dynamic", IMAGE, (4, 3)),
    pool("adaptive_avg_pool2d, one size kept", IMAGE, (None, 5)),
    pool("adaptive_avg_pool2d, larger", IMAGE, (12, 10)),
    pool("adaptive_avg_pool2d, one place", "S,2,1,1,f32", (3, 2)),
    pool("adaptive_max_pool2d, one place", "S,2,1,1,f32", (3, 2)),
    pool("adaptive_avg_pool2d, special", "S,2,7,5,f32", (4, 3), make="special"),
    pool("adaptive_avg_pool2d, f16", "S,2,7,5,f16", (4, 3)),
    pool("adaptive_avg_pool3d", VOLUME, (4, 3, 5)),
    pool("adaptive_max_pool1d", LINE, 4),
    pool("adaptive_max_pool2d, even", "S,2,6,8,f32", (3, 2)),
    pool("adaptive_max_pool2d, uneven", IMAGE, (4, 5)),
    pool("adaptive_max_pool3d", VOLUME, (4, 3, 5)),
    places("adaptive_max_pool1d, places", LINE, case={"output_size": 4}),
    places("adaptive_max_pool2d, places", IMAGE, case={"output_size": (4, 5)}),
    places("adaptive_max_pool2d, places, even", "S,2,6,8,f32", case={"output_size": (3, 2)}),
    places("adaptive_max_pool2d, places of equals", "S,2,7,8,f32", case={"output_size": (3, 3)}, make="integers"),
    places("adaptive_max_pool3d, places", "S,2,5,4,7,f32", case={"output_size": (3, 3, 2)}),
]
