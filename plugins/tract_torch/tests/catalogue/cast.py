"""Element types of PyTorch, and what leaves a tensor as it is, in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import Entry, one

ENTRIES = [
    one(lambda x: x.to(torch.float64).to(torch.int64), "to"),
    one(lambda x: x.half().float(), "half"),
    Entry("type_as", lambda x, y: x.type_as(y), ("S,3,f32", "1,i64")),
    *(one(lambda x, name=name: getattr(x, name)() * 2, name) for name in ("clone", "detach", "contiguous")),
    one(lambda x: torch.ops.aten.alias(x) + 1, "alias"),
    *(
        Entry(f"to, {kind} as bytes", lambda x: x.to(torch.uint8), (f"S,3,{kind}:wide",))
        for kind in ("f16", "f32", "f64")
    ),
    one(torch.ops.aten.lift_fresh_copy, "lift_fresh_copy"),
    one(lambda x: x.t().contiguous().t(), "contiguous, of a view"),
    one(lambda x: x.numel() + x.size(0) + x.dim(), "numel, size, dim"),
    one(lambda x: x.resolve_neg() + x.resolve_conj(), "resolve_neg, resolve_conj"),
]
