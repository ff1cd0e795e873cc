"""Operators that move elements of PyTorch in the catalogue."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry, one

ENTRIES = [
    one(lambda x: x.reshape(-1, 6), "reshape", shape="S,4,3,f32"),
    one(lambda x: x.view(x.shape[0], -1), "view", shape="S,4,3,f32"),
    one(lambda x: x.permute(2, 0, 1), "permute", shape="S,4,3,f32"),
    one(lambda x: x.transpose(-1, 0), "transpose", shape="S,4,3,f32"),
    one(lambda x: x.t(), "t"),
    one(lambda x: x.unsqueeze(-1).squeeze(1), "unsqueeze and squeeze", shape="S,1,3,f32"),
    one(lambda x: x.expand(4, -1, -1), "expand"),
    one(lambda x: x.repeat(2, 3), "repeat"),
    one(lambda x: x.flatten(), "flatten"),
    one(lambda x: x[1:], "slice"),
    one(lambda x: x[:, 0], "select"),
    one(lambda x: x[-1], "the last"),
    one(lambda x: x[:, ::2], "every second"),
    one(lambda x: torch.cat([x, x * 2], 0), "cat"),
    one(lambda x: torch.stack([x, x + 1], 1), "stack"),
    one(lambda x: torch.cat(x.chunk(3, 1)[::-1], 1), "chunk"),
    one(lambda x: x.split([1, 2], 1)[1], "split"),
    one(lambda x: torch.cat([part * 2 for part in x.unbind(1)]), "unbind"),
    one(lambda x: torch.zeros_like(x) + torch.ones(3) + torch.full((1,), 2.0), "zeros, ones, full"),
    one(lambda x: x + torch.arange(x.shape[0]).unsqueeze(1), "arange"),
    one(lambda x: x.to(torch.float64).to(torch.int64), "to"),
    one(lambda x: x.half().float(), "half"),
    one(lambda x: x * x.shape[0] + x.numel(), "sizes as numbers"),
    one(lambda x: F.pad(x, (1, 2)), "pad"),
    one(lambda x: torch.tril(torch.ones(3, 3)) @ x.t(), "tril"),
    one(lambda x: x.flip(1), "flip"),
    Entry("index_select", lambda x, i: x.index_select(1, i), ("S,3,f32", "2,i64"), "below 3"),
    Entry("gather", lambda x, i: x.gather(1, i), ("4,3,f32", "4,2,i64"), "below 3"),
    Entry("index by a matrix", lambda x, i: x[:, i], ("S,3,4,f32", "2,5,i64"), "below 3"),
    Entry("index by two", lambda x, i, j: x[i, j], ("3,3,S,f32", "5,i64", "2,5,i64"), "below 3"),
    Entry("index by two behind", lambda x, i, j: x[:, i, j], ("S,3,3,4,f32", "5,i64", "2,5,i64"), "below 3"),
    Entry("index by two apart", lambda x, i, j: x[i, :, j], ("3,S,3,f32", "5,i64", "2,1,i64"), "below 3"),
    Entry("cumsum", lambda x: x.cumsum(-1), ("S,4,f32",)),
    Entry("cumsum of integers", lambda x: x.cumsum(0), ("S,4,i64",)),
    Entry("embedding", lambda w, i: F.embedding(i, w), ("3,4,f32", "S,i64"), "below 3"),
]
