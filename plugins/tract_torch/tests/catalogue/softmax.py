"""Softmax and its kin of PyTorch in the catalogue."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry, one

ENTRIES = [
    one(lambda x: (torch.softmax(x, -1), x.softmax(0)), "softmax"),
    one(lambda x: (torch.log_softmax(x, 0), x.log_softmax(-1)), "log_softmax"),
    one(lambda x: (x.softmax(-1), x.log_softmax(-1)), "softmax, not a number", "special", "S,4,f32"),
    one(lambda x: torch.full_like(x, -torch.inf).softmax(-1), "softmax, of nothing"),
    one(lambda x: torch.ops.aten._safe_softmax(torch.full_like(x, -torch.inf), -1), "_safe_softmax, of nothing"),
    one(lambda x: (x.softmax(-1, dtype=torch.float64), x.log_softmax(0, dtype=torch.float64)), "softmax, dtype"),
    one(lambda x: x.half().softmax(-1, dtype=torch.float32), "softmax, wider"),
    one(lambda x: x.softmax(-1, dtype=torch.float32), "softmax, integers", shape="S,3,i64"),
    one(lambda x: (F.softmin(x, 1), F.softmax(x, dim=None)), "softmin", shape="S,3,4,f32"),
    Entry("softmax, no axes", lambda x: (x.softmax(0), x.log_softmax(0)), ("f32",)),
    one(lambda x: (x[:, :0].softmax(1), x[:, :0].log_softmax(1)), "softmax, empty"),
]
