"""Attention of PyTorch in the catalogue."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

_QKV = ("2,3,S,4,f32", "2,3,5,4,f32", "2,3,5,4,f32")
_GROUPED = ("2,4,S,4,f32", "2,2,5,4,f32", "2,2,5,6,f32")


def _masked(lost: int, **options: Any) -> Any:
    """Attention with a mask, which leaves out everything for one query."""

    def call(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        seen = mask & (torch.arange(q.shape[-2]) != lost)[:, None]
        return F.scaled_dot_product_attention(q, k, v, seen, **options)

    return call


def _added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    lost = torch.where(torch.arange(q.shape[-2]) == 1, -torch.inf, 0.0)
    return F.scaled_dot_product_attention(q, k, v, mask + lost[:, None], scale=0.3)


def _heads(q: Tensor, k: Tensor, weights: Tensor, out: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    found, shares = F.multi_head_attention_forward(
        q, k, k, 4, 2, weights, None, None, None, False, 0.0, out, None, False, mask
    )
    assert shares is not None
    return found, shares


def _safe(x: Tensor) -> Tensor:
    lost = torch.arange(x.shape[0]) == 1
    return torch.ops.aten._safe_softmax(x.masked_fill(lost[:, None], -torch.inf), -1)


ENTRIES = [
    Entry(
        "scaled_dot_product_attention, heads of any width",
        lambda q, k: F.scaled_dot_product_attention(q, k, k),
        ("2,3,S,f32", "2,5,S,f32"),
    ),
    Entry(
        "scaled_dot_product_attention, by a size",
        lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=1 / q.shape[2]),
        ("2,3,S,4,f32", "2,3,5,4,f32"),
    ),
    Entry("scaled_dot_product_attention, a mask", _masked(9), (*_QKV, "S,5,bool")),
    Entry("scaled_dot_product_attention, nothing is seen", _masked(1), (*_QKV, "2,1,S,5,bool")),
    Entry("scaled_dot_product_attention, a mask that is added", _added, (*_QKV, "3,S,5,f32")),
    Entry("scaled_dot_product_attention, grouped and masked", _masked(0, enable_gqa=True), (*_GROUPED, "S,5,bool")),
    Entry(
        "scaled_dot_product_attention, more queries than keys",
        lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True),
        ("2,S,4,f32", "2,3,4,f32"),
    ),
    Entry("multi_head_attention", _heads, ("S,2,4,f32", "5,2,4,f32", "12,4,f32", "4,4,f32", "2,5,bool")),
    Entry("_safe_softmax", _safe, ("S,3,f32",)),
    Entry(
        "scaled_dot_product_attention, f16",
        F.scaled_dot_product_attention,
        ("2,S,4,f16", "2,5,4,f16", "2,5,4,f16"),
        tolerance=2e-3,
    ),
    Entry(
        "scaled_dot_product_attention, of nothing", lambda x: F.scaled_dot_product_attention(x, x, x), ("2,S,0,f32",)
    ),
]
