"""Operators of PyTorch that pick elements by their positions, in the catalogue."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry, one

STRETCHED = "PyTorch compares the sizes, and fixes them"

ENTRIES = [
    Entry("index_select", lambda x, i: x.index_select(1, i), ("S,3,f32", "2,i64"), "below 3"),
    Entry("index_select, i32", lambda x, i: x.index_select(-1, i), ("S,3,u8", "2,i32"), "below 3"),
    Entry("index_select, a number", lambda x, i: x.index_select(0, i), ("S,3,f32", "i64"), "below 3"),
    Entry("index_select, of a number", lambda x, i: x.sum().index_select(0, i * 0), ("S,f32", "1,i64"), "below 3"),
    Entry("gather", lambda x, i: x.gather(1, i), ("4,3,f32", "4,2,i64"), "below 3"),
    Entry("gather, smaller index", lambda x, i: x.gather(0, i), ("5,4,S,f16", "2,3,S,i64"), "below 5"),
    Entry("gather, of a number", lambda x, i: x.sum().gather(0, i * 0), ("S,f32", "i64"), "below 3"),
    Entry("index, a matrix", lambda x, i: x[:, i], ("S,3,4,f32", "2,5,i64"), "below 3"),
    Entry("index, two", lambda x, i, j: x[i, j], ("3,3,S,f32", "5,i64", "2,5,i64"), "below 3"),
    Entry("index, two behind", lambda x, i, j: x[:, i, j], ("S,3,3,4,f32", "5,i64", "2,5,i64"), "below 3"),
    Entry("index, two apart", lambda x, i, j: x[i, :, j], ("3,S,3,f32", "5,i64", "2,1,i64"), "below 3"),
    Entry("index, from the end", lambda x, i: x[i - 3], ("S,3,f32", "2,i64"), "below 6", sizes=(3, 7)),
    Entry("index, a constant", lambda x: x[:, torch.tensor([2, 0, -1])], ("S,3,bf16",)),
    Entry("index, a mask", lambda x: x[x > 0], ("S,3,f32",)),
    Entry("index, a mask of rows", lambda x, m: x[m], ("S,3,f32", "S,bool")),
    Entry("index, a mask of columns", lambda x, m: x[:, m], ("S,4,2,f32", "4,bool")),
    Entry("index, a mask of two axes", lambda x, m: x[:, m], ("2,S,4,f32", "S,4,bool")),
    Entry("index, a mask with nothing", lambda x: x[x > 100], ("S,3,f32",)),
    Entry("masked_select", torch.masked_select, ("S,3,f32", "S,1,bool")),
    Entry("take", lambda x, i: x.take(i), ("S,3,f32", "2,4,i64"), "below 9"),
    Entry("take, from the end", lambda x, i: x.take(i - 9), ("S,3,f32", "4,i64"), "below 18"),
    Entry(
        "take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1), ("S,3,f32", "S,2,i64"), "below 3", fixed=STRETCHED
    ),
    Entry(
        "take_along_dim, stretched",
        lambda x, i: torch.take_along_dim(x, i, 1),
        ("S,3,f32", "1,2,i64"),
        "below 3",
        fixed=STRETCHED,
    ),
    Entry("take_along_dim, of all", torch.take_along_dim, ("S,3,f32", "5,i64"), "below 9"),
    Entry("embedding", lambda w, i: F.embedding(i, w), ("3,4,f32", "S,i64"), "below 3"),
    Entry("embedding, i32", lambda w, i: F.embedding(i, w, padding_idx=1), ("3,4,bf16", "2,S,i32"), "below 3"),
    Entry("unfold", lambda x: x.unfold(0, 3, 2), ("S,4,f32",)),
    Entry("unfold, last axis", lambda x: x.unfold(-1, 2, 1), ("S,5,i64",)),
    Entry("unfold, apart", lambda x: x.unfold(1, 2, 4), ("2,8,S,f32",)),
    Entry("unfold, of a number", lambda x: x.sum().unfold(0, 1, 1), ("S,f32",)),
    Entry("unfold_copy", lambda x: torch.unfold_copy(x, 1, 3, 2), ("S,7,f32",)),
    Entry("as_strided", lambda x: x.as_strided((3, 2), (4, 2), 1), ("S,4,f32",)),
    Entry("as_strided, frames", lambda x: x.as_strided((x.shape[0] - 2, 3), (1, 1)), ("S,f32",), sizes=(4, 7)),
    Entry("as_strided, the same again", lambda x: x.as_strided((4, 3), (0, 1)), ("5,f32",)),
    Entry("as_strided_copy", lambda x: torch.as_strided_copy(x, (2, 2), (1, 2)), ("2,5,f32",)),
    Entry("repeat_interleave", lambda x: x.repeat_interleave(2, 1), ("S,3,f32",)),
    Entry("repeat_interleave, of all", lambda x: x.repeat_interleave(3), ("S,3,f32",)),
    Entry("repeat_interleave, each", lambda x, n: x.repeat_interleave(n, 1), ("S,4,f32", "4,i64"), "below 4"),
    Entry("repeat_interleave, of rows", lambda x, n: x.repeat_interleave(n, 0), ("S,2,f32", "S,i64"), "below 3"),
    Entry("repeat_interleave, numbers", torch.repeat_interleave, ("S,i32",), "below 3"),
    Entry(
        "repeat_interleave, as many as known",
        lambda x: x.repeat_interleave(torch.tensor([0, 2, 1, 0]), 1, output_size=3),
        ("S,4,f32",),
    ),
    one(lambda x: x.diagonal(), "diagonal"),
    one(lambda x: x.diagonal(1), "diagonal, above", shape="3,5,f32"),
    one(lambda x: x.diagonal(-1, 2, 1), "diagonal, other axes", shape="S,3,5,f32"),
    one(lambda x: (x[:, None] * x).diagonal(1), "diagonal, of a square", shape="S,f32"),
    one(lambda x: x.diagonal(7), "diagonal, outside", shape="3,5,f32"),
    one(lambda x: torch.linalg.diagonal(x, offset=1), "linalg_diagonal", shape="S,3,4,f32"),
    one(torch.diag, "diag", shape="4,3,f32"),
    one(lambda x: torch.diag(x, -1), "diag, of a vector", shape="S,f32"),
    one(lambda x: torch.diag_embed(x, -1), "diag_embed", shape="S,3,f32"),
    one(lambda x: torch.diag_embed(x, 2, 0, 2), "diag_embed, other axes", shape="2,S,f32"),
    one(lambda x: torch.diagflat(x, 1), "diagflat"),
]
