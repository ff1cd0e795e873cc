"""Tensors with something around them, of PyTorch, in the catalogue."""

from __future__ import annotations

from typing import Any

from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry


def pad(name: str, shape: str, pads: tuple[int, ...], mode: str = "constant", **options: Any) -> Entry:
    return Entry(name, lambda x: F.pad(x, pads, mode=mode, **options), (shape,), sizes=(5, 8))


ENTRIES = [
    pad("constant_pad_nd", "2,S,f32", (1, 2)),
    pad("constant_pad_nd, with a number", "2,S,3,f32", (0, 2, 3, 0), value=-1.5),
    pad("constant_pad_nd, less and more", "2,S,3,f32", (2, -1, -2, 1)),
    pad("constant_pad_nd, cut on both sides", "2,S,3,f32", (0, 0, -1, -2)),
    pad("constant_pad_nd, integers", "2,S,3,i64", (1, 1, 1, 0), value=7),
    pad("constant_pad_nd, booleans", "2,S,bool", (1, 1), value=1),
    pad("constant_pad_nd, bf16", "2,S,bf16", (1, 1), value=0.1),
    pad("reflection_pad1d", "2,3,S,f32", (1, 3), "reflect"),
    pad("reflection_pad1d, one item", "3,S,f32", (2, -2), "reflect"),
    pad("reflection_pad2d", "2,3,S,5,f32", (1, 2, 3, 0), "reflect"),
    pad("reflection_pad3d", "2,3,S,5,4,f32", (1, 2, 2, 0, 3, 1), "reflect"),
    pad("replication_pad1d", "2,3,S,f32", (4, 3), "replicate"),
    pad("replication_pad2d", "2,3,S,5,f32", (1, 2, -1, 6), "replicate"),
    pad("replication_pad3d", "2,3,S,5,4,i64", (1, 2, 2, 0, 3, 1), "replicate"),
    pad("circular pad 1d", "2,3,S,f32", (2, 3), "circular"),
    pad("circular pad 2d", "2,3,S,5,f32", (2, 3, 4, 1), "circular"),
    pad("circular pad 3d", "1,2,S,5,4,f32", (1, 3, 2, 1, 3, 1), "circular"),
    Entry("pad by a size", lambda x: F.pad(x, (0, x.shape[0] * 2)), ("S,3,f32",)),
]
