"""Reductions of PyTorch in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from catalogue.entry import Entry, one

T = torch.ops.aten
BOOLS, LONGS, BYTES = "S,3,bool", "S,3,i64", "S,3,u8"


def _along(name: str) -> Callable[..., Any]:
    """All, one axis, and one from the end that stays."""
    function = getattr(torch, name)
    return lambda x: (function(x), function(x, dim=0), function(x, dim=-1, keepdim=True))


def _several(name: str) -> Callable[..., Any]:
    function = getattr(torch, name)
    return lambda x: (function(x, dim=(0, -1)), function(x, dim=(1, 2), keepdim=True))


def _spread(x: torch.Tensor, scale: float) -> tuple[torch.Tensor, ...]:
    """Deviations and means, which are numbers of the type, at sizes of which the squares are none."""
    return tuple(
        one / scale for one in (x.std(), x.std(1), *torch.std_mean(x, 0, correction=0), torch.var_mean(x, 1)[1])
    )


ENTRIES = [
    *(
        one(_along(name), name)
        for name in ("sum", "mean", "amax", "amin", "argmax", "argmin", "var", "std", "any", "all", "norm", "prod")
    ),
    *(one(_along(name), name) for name in ("nansum", "nanmean", "var_mean", "std_mean")),
    *(
        one(_along(name), f"{name}, not a number", "special", "S,4,f32")
        for name in ("sum", "amax", "amin", "argmax", "argmin", "any", "all", "nansum", "nanmean", "var", "prod")
    ),
    *(
        one(_several(name), f"{name}, two axes", shape="2,S,3,f32")
        for name in ("sum", "mean", "amax", "amin", "var", "std", "any", "all", "logsumexp", "nansum", "nanmean")
    ),
    *(one(_along(name), f"{name}, integers", shape=LONGS) for name in ("sum", "amax", "argmin", "any", "all", "prod")),
    *(one(_along(name), f"{name}, bytes", shape=BYTES) for name in ("sum", "amax", "argmax", "any", "all", "prod")),
    *(one(_along(name), f"{name}, booleans", shape=BOOLS) for name in ("sum", "amax", "amin", "any", "all", "prod")),
    one(lambda x: (T._is_all_true(x > -9), T._is_any_true(x > 9), T._is_any_true(x > 0)), "_is_all_true, _is_any_true"),
    one(lambda x: (torch.max(x), torch.min(x), *x.max(1), *x.min(0, keepdim=True)), "max, min"),
    one(lambda x: (*x.max(1), *x.min(1)), "max, not a number", "special", "S,4,f32"),
    one(lambda x: (*x.max(1), *x.min(1), x.max()), "max, ties", "integers", LONGS),
    one(lambda x: (*x.max(1), *x.min(1), x.max()), "max, booleans", shape=BOOLS),
    one(lambda x: (*torch.aminmax(x), *torch.aminmax(x, dim=1), *torch.aminmax(x, dim=0, keepdim=True)), "aminmax"),
    one(lambda x: (torch.argmax(x, keepdim=True), x.argmin(keepdim=True)), "argmax, keepdim"),
    one(
        lambda x: (x.sum(dtype=torch.float64), x.mean(dtype=torch.float64), x.prod(1, dtype=torch.float64)),
        "sum, dtype",
    ),
    one(lambda x: (x.sum(1, dtype=torch.int32), x.half().sum(1), x.half().mean()), "sum, narrow", "integers"),
    one(lambda x: (x.sum(()), x.mean(()), x.sum([])), "sum, no axes named"),
    *(
        one(
            lambda x, kind=kind, scale=scale: _spread(x.to(kind) * scale, scale), f"std, {scale} {kind}", tolerance=near
        )
        for kind, scale, near in (
            *((torch.float32, scale, 2e-5) for scale in (1e30, 1e36, 1e-30)),
            *((torch.bfloat16, scale, 2e-2) for scale in (1e30, 1e-30)),
            (torch.float16, 1e4, 2e-3),
        )
    ),
    one(lambda x: (x.var(correction=0), x.var(1, correction=2), x.std(unbiased=False)), "var, correction"),
    one(lambda x: torch.std_mean(x, dim=(0, 1), correction=0, keepdim=True), "std_mean, correction"),
    one(lambda x: (x.logsumexp(0), x.logsumexp((0, 1)), x.logsumexp(-1, keepdim=True)), "logsumexp"),
    one(lambda x: x.logsumexp(1), "logsumexp, infinite", "special", "S,4,f32"),
    one(lambda x: torch.full_like(x, -torch.inf).logsumexp(1), "logsumexp, of zeros"),
    one(lambda x: x.logsumexp(1), "logsumexp, integers", shape=LONGS),
    one(lambda x: (x.count_nonzero(), x.count_nonzero(1), x.count_nonzero((0, 1))), "count_nonzero, axes", "integers"),
    one(
        lambda x: (x.sum(-1), x.mean(0), x.amax(), x.prod(), x.any(), x.all(), x.logsumexp(0)),
        "sum, a vector",
        shape="S,f32",
    ),
    Entry("sum, no axes", lambda x: (x.sum(), x.mean(0), x.amax(), x.prod(0), x.any(), x.argmax(0)), ("f32",)),
    Entry("sum, of nothing", lambda x: (x[:0].sum(0), x[:0].prod(0), x[:0].mean(0), x[:0].any(0)), ("4,3,f32",)),
    one(lambda x: (x.var(1), x.std(1), x.mean(1)), "var, of one", shape="S,1,f32"),
    one(lambda x: (x.norm(p=1), x.norm(3, dim=1), x.norm(float("inf"), dim=0), x.norm(0, dim=1)), "norm, orders"),
    one(lambda x: (x.quantile(0.3), x.quantile(0.5, dim=1), x.nanquantile(0.2, dim=1)), "quantile"),
    Entry("all, of nothing", lambda x: (x.all(), x.all(0), x.any(1)), ("0,3,u8",)),
]
