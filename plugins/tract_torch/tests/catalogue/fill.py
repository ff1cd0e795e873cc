"""Operators of PyTorch that make tensors, in the catalogue."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry, one


def windows() -> list[Entry]:
    names = ("hann", "hamming", "blackman", "bartlett", "kaiser")
    found = [
        one(
            lambda x, name=name, even=even: x[0] + getattr(torch, f"{name}_window")(7, periodic=even),
            f"{name}_window{note}",
            shape="S,7,f32",
        )
        for name in names
        for even, note in ((True, ""), (False, ", symmetric"))
    ]
    return [
        *found,
        one(lambda x: x[0] * torch.kaiser_window(4, True, beta=3.0), "kaiser_window, beta", shape="S,4,f32"),
    ]


NUMBER = "PyTorch takes a number there, and no size"

ENTRIES = [
    *windows(),
    one(lambda x: torch.zeros_like(x) + torch.ones(3) + torch.full((1,), 2.0), "zeros, ones, full"),
    one(lambda x: x.new_zeros(2, 3) + x.new_ones(3) + x.new_full((2, 1), 2.0), "new_zeros, new_ones, new_full"),
    one(lambda x: torch.full_like(x, 2), "full_like", shape="S,3,i32"),
    one(lambda x: torch.ones_like(x, dtype=torch.bool), "ones_like"),
    one(lambda x: torch.full((x.shape[0], 2), x.shape[0]), "full, with a size"),
    one(lambda x: torch.full((2,), 0.1, dtype=torch.float64) * x.sum(), "full, f64", shape="S,f64"),
    one(lambda x: torch.zeros(x.shape[0], 0, 2), "zeros, of nothing"),
    one(lambda x: torch.empty(3).fill_(2) + x, "empty"),
    one(lambda x: x.new_empty(3).fill_(1.5) + x, "new_empty"),
    one(lambda x: torch.empty_like(x).zero_() + x, "empty_like"),
    one(lambda x: torch.empty_strided((2, 3), (3, 1)).zero_() + x[:1], "empty_strided"),
    one(lambda x: torch.empty_permuted((2, 3), (1, 0)).fill_(3) + x[:1], "empty_permuted"),
    one(lambda x: torch.empty(x.shape[0]).shape[0] + x, "empty, its size"),
    one(lambda x: torch.fill(x, 2.5), "fill"),
    Entry("fill, a tensor", torch.fill, ("S,3,f32", "f32")),
    one(torch.ops.aten.zero, "zero"),
    Entry("copy", torch.ops.aten.copy, ("S,3,f32", "3,i64")),
    Entry("copy_", lambda x, y: x.clone().copy_(y), ("S,3,f16", "1,3,f32")),
    one(lambda x: torch.scalar_tensor(3) + x, "scalar_tensor"),
    one(lambda x: torch.tensor(x.shape[0]) + x, "scalar_tensor, a size"),
    one(lambda x: torch.eye(3) @ x.t(), "eye"),
    one(lambda x: torch.eye(x.shape[0], 4, dtype=torch.int32), "eye, of a size"),
    one(lambda x: x + torch.arange(x.shape[0]).unsqueeze(1), "arange"),
    one(lambda x: x + torch.arange(1, 3, 0.75), "arange, steps"),
    one(lambda x: torch.arange(0.25, x.shape[0], 0.5), "arange, fractions up to a size"),
    one(lambda x: torch.arange(x.shape[0], 0, -2) * 2, "arange, backwards"),
    one(lambda x: torch.arange(5, dtype=torch.bfloat16) + x.sum().bfloat16() * 0, "arange, bf16"),
    one(lambda x: torch.linspace(-1, 2, 3) + x, "linspace"),
    Entry("linspace, of a size", lambda x: torch.linspace(-1, 2, x.shape[0]), ("S,3,f32",), sizes=(1, 2, 4, 7)),
    one(lambda x: torch.linspace(1 / x.shape[0], x.shape[0], x.shape[0], dtype=torch.float64), "linspace, to a size"),
    one(lambda x: torch.linspace(x[0, 0], x[0, 1], 4), "linspace, tensors"),
    one(lambda x: torch.linspace(0, 9, 1) + x, "linspace, one"),
    one(lambda x: torch.logspace(-1, 2, 3) + x, "logspace"),
    one(lambda x: torch.logspace(0, 3, 3, base=2) + x, "logspace, base 2"),
    one(lambda x: torch.tril_indices(3, 4, 1) + x[0, 0].long(), "tril_indices"),
    one(lambda x: torch.triu_indices(3, 4, -1) + x[0, 0].long(), "triu_indices"),
    Entry(
        "tril_indices, of a size",
        lambda x: torch.tril_indices(4, x.shape[0], dtype=torch.int32),
        ("S,f32",),
        fixed=NUMBER,
    ),
    Entry("triu_indices, of a size", lambda x: torch.triu_indices(x.shape[0], 4, 1), ("S,f32",), fixed=NUMBER),
    one(lambda x: x.tril(-1), "tril, below", shape="S,3,f32"),
    one(lambda x: torch.tril(torch.ones(3, 3)) @ x.t(), "tril"),
    one(lambda x: (x[..., None] * x[:, None]).triu(1), "triu", shape="2,S,f32"),
    one(lambda x: (x > 0).triu(), "triu, booleans"),
    one(lambda x: torch.full((x.shape[0],) * 2, float("-inf")).triu(1), "triu, a causal mask"),
    one(lambda x: F.one_hot(x, 5), "one_hot", "below 5", "S,3,i64"),
    one(lambda x: F.one_hot(x % 3, 3).float(), "one_hot, float", "below 5", "S,i64"),
    one(lambda x: F.one_hot(x % x.shape[0], x.shape[0]), "one_hot, of a size", "below 5", "S,i64"),
    Entry("vander", lambda x: torch.vander(x, 4), ("S,f32",), fixed="PyTorch's decomposition wants to know it"),
    one(lambda x: torch.vander(x, increasing=True), "vander, increasing", shape="4,f32"),
    Entry("cartesian_prod", torch.cartesian_prod, ("S,f32", "2,f32")),
    Entry("block_diag", torch.block_diag, ("S,3,f32", "2,2,f32")),
    Entry("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), ("S,f32", "3,f32")),
    Entry("meshgrid, xy", lambda a, b: torch.meshgrid(a, b, indexing="xy"), ("S,f32", "3,f32")),
]
