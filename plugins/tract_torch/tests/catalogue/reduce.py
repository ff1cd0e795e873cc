"""Reductions of PyTorch in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import one

ENTRIES = [
    *(one(getattr(torch, name)) for name in ("sum", "mean", "amax", "amin", "prod", "argmax", "var", "std", "max")),
    *(
        one(lambda x, name=name: getattr(torch, name)(x, dim=1, keepdim=True), f"{name}, one axis")
        for name in ("sum", "mean", "amax", "argmin", "argmax", "var", "logsumexp", "any", "all", "prod", "norm")
    ),
    one(lambda x: x.sum((0, -1)), "sum, two axes", shape="2,S,3,f32"),
    one(lambda x: x.max(dim=1)[0], "max, one axis"),
    one(lambda x: x.any(), "any", make="integers", shape="S,3,i64"),
    one(lambda x: x.sum(), "sum of booleans", make="integers", shape="S,3,i64"),
    one(lambda x: torch.softmax(x, -1), "softmax"),
    one(lambda x: torch.log_softmax(x, 0), "log_softmax"),
]
