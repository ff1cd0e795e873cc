"""Operators of PyTorch that write elements to positions, in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from catalogue.entry import Entry


def put(*places: Any, value: float | None = None) -> Callable[..., torch.Tensor]:
    """What sets a part of a copy to another tensor, or to a number."""

    def call(x: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
        y = x.clone()
        y[places] = value if values is None else values
        return y

    return call


def put_at(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, index] = values
    return y


def put_where(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[mask] = 2.5
    return y


def orders(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Positions along the last axis, none twice."""
    return torch.argsort(index, dim=-1, stable=True)


REDUCED = [
    Entry(
        f"scatter_reduce, {name}{'' if included else ', without self'}, {kind}",
        lambda x, i, y, name=name, included=included: x.scatter_reduce(0, i, y, name, include_self=included),
        (f"5,3,{kind}", "S,2,i64:below 5", f"S,3,{kind}"),
    )
    for name in ("sum", "prod", "mean", "amax", "amin")
    for included in (True, False)
    for kind in ("f32", "i64")
]

ENTRIES = [
    *REDUCED,
    *(
        Entry(
            f"scatter_reduce, mean of ends of {kind}",
            lambda x, i, y: x.scatter_reduce(0, i * 0, y * 0, "mean"),
            (f"5,3,{kind}:ends", "2,3,i64", f"2,3,{kind}"),
        )
        for kind in ("i8", "i64")
    ),
    Entry(
        "masked_scatter, nothing",
        lambda x, y: x.masked_scatter(x > 100, y[:, :0]),
        ("S,4,f32", "S,4,f32"),
    ),
    Entry("scatter", lambda x, i, y: x.scatter(1, orders(x, i), y), ("S,4,f32", "S,4,i64", "S,4,f32")),
    Entry(
        "scatter, larger source", lambda x, i, y: x.scatter(1, i[:, :1] * 0 + 2, y), ("S,4,f32", "S,2,i64", "S,3,f32")
    ),
    Entry("scatter, a number", lambda x, i: x.scatter(1, i, 2.5), ("S,4,f16", "S,2,i64"), "below 4"),
    Entry(
        "scatter, added", lambda x, i, y: x.scatter(0, i, y, reduce="add"), ("4,S,f32", "6,S,i64", "6,S,f32"), "below 4"
    ),
    Entry("scatter, times", lambda x, i: x.scatter(0, i, 2, reduce="multiply"), ("4,S,i64", "6,S,i64"), "below 4"),
    Entry("scatter_add", lambda x, i, y: x.scatter_add(0, i, y), ("4,3,f32", "S,2,i64:below 4", "S,3,f32")),
    Entry(
        "scatter_add, bf16",
        lambda x, i, y: x.scatter_add(1, i, y),
        ("S,4,bf16", "S,3,i64:below 4", "S,3,bf16"),
        tolerance=2e-2,
    ),
    Entry(
        "scatter_reduce, NaN",
        lambda x, i, y: x.scatter_reduce(0, i, y, "amax"),
        ("5,f32", "8,i64:below 5", "8,f32:special"),
    ),
    Entry("index_reduce", lambda x, i, y: x.index_reduce(0, i, y, "prod"), ("5,3,f32", "S,i64:below 5", "S,3,f32")),
    Entry(
        "index_reduce, amin",
        lambda x, i, y: x.index_reduce(1, i, y, "amin", include_self=False),
        ("S,5,f32", "7,i64:below 5", "S,7,f32"),
    ),
    Entry("index_put", lambda x, i, y: x.index_put((i.argsort(),), y), ("5,S,f32", "5,i64", "5,S,f32")),
    Entry(
        "index_put, added",
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        ("3,4,f32", "S,i64:below 3", "S,4,f32"),
    ),
    Entry("index_put, a row", lambda x, i, y: x.index_put((i,), y), ("5,S,f32", "2,i64:below 5", "S,f32")),
    Entry(
        "index_put, two",
        lambda x, i, j, y: x.index_put((i, j), y, accumulate=True),
        ("3,4,S,f32", "5,i64:below 3", "2,5,i64:below 4", "2,5,S,f32"),
    ),
    Entry(
        "index_put, from the end",
        lambda x, i: x.index_put((i - 3,), torch.tensor(7.0)),
        ("S,3,f32", "2,i64"),
        "below 3",
    ),
    Entry("index_put, behind", put_at, ("S,4,f32", "2,i64:below 4", "S,1,f32")),
    Entry(
        "index_put, apart",
        lambda x, i, j, y: x.clone().index_put_((i, torch.arange(4)[:, None, None], j), y),
        ("3,4,3,f32", "2,i64:below 1", "5,1,i64:below 1", "f32"),
    ),
    Entry("index_put, a mask", put_where, ("S,3,f32", "S,3,bool")),
    Entry("index_put, a mask of rows", put_where, ("S,3,f32", "S,bool")),
    Entry("index_put, a mask and as many", lambda x, y: x.index_put((x > 0,), y[x > 0]), ("S,3,f32", "S,3,f32")),
    Entry(
        "index_put, a mask, added",
        lambda x, m, y: x.index_put((m,), y, accumulate=True),
        ("S,3,f32", "S,bool", "3,f32"),
    ),
    Entry("index_put, a slice", put(slice(1, 3), slice(None, None, 2), value=7.0), ("S,4,f32",)),
    Entry("index_put, the last", put(-1, value=7.0), ("S,4,i64",)),
    Entry("index_add", lambda x, i, y: x.index_add(0, i, y, alpha=2), ("4,3,f32", "S,i64:below 4", "S,3,f32")),
    Entry("index_add, columns", lambda x, i, y: x.index_add(1, i, y), ("S,4,i64", "5,i64:below 4", "S,5,i64")),
    Entry("index_copy", lambda x, i, y: x.index_copy(1, i.argsort(), y), ("S,3,f32", "3,i64", "S,3,f32")),
    Entry("index_fill", lambda x, i: x.index_fill(1, i, 2.0), ("S,4,f32", "2,i64:below 4")),
    Entry("index_fill, a tensor", lambda x, i, v: x.index_fill(0, i, v), ("S,4,f32", "2,i64:below 3", "f32")),
    Entry("masked_scatter", torch.masked_scatter, ("S,4,f32", "S,4,bool", "S,4,f32")),
    Entry("masked_scatter, stretched", torch.masked_scatter, ("S,4,f32", "S,1,bool", "S,4,f32")),
    Entry("put", lambda x, i, y: x.put(i.argsort(), y), ("S,4,f32", "3,i64", "3,f32")),
    Entry("put, added", lambda x, i, y: x.put(i, y, accumulate=True), ("S,4,f32", "2,3,i64:below 12", "2,3,f32")),
    Entry("select_scatter", lambda x, y: x.select_scatter(y, 1, -1), ("S,3,f32", "S,f32")),
    Entry("select_scatter, rows", lambda x, y: x.select_scatter(y, 0, 1), ("S,3,f32", "3,f32")),
    Entry("select_scatter, the last row", lambda x, y: x.select_scatter(y, 0, -1), ("S,3,f32", "3,f32")),
    Entry("slice_scatter", lambda x, y: x.slice_scatter(y, 1, 1, 3), ("S,4,f32", "S,2,f32")),
    Entry("slice_scatter, rows", lambda x, y: x.slice_scatter(y, 0, 1, 3), ("S,4,f32", "2,4,f32")),
    Entry("slice_scatter, the end", lambda x, y: x.slice_scatter(y, 0, -2), ("S,4,f32", "2,4,f32")),
    Entry("slice_scatter, all but", lambda x: x.slice_scatter(x[:-1] * 2, 0, 1), ("S,4,f32",)),
    Entry("slice_scatter, steps", lambda x, y: x.slice_scatter(y, 1, 0, 5, 2), ("S,5,f32", "S,3,f32")),
    Entry(
        "slice_scatter, steps of rows",
        lambda x: x.slice_scatter(x[1::2] + 1, 0, 1, None, 2),
        ("S,5,f32",),
        sizes=(4, 7),
    ),
    Entry("diagonal_scatter", lambda x, y: x.diagonal_scatter(y, 1), ("4,5,f32", "4,f32")),
    Entry("diagonal_scatter, other axes", lambda x, y: x.diagonal_scatter(y, -1, 2, 0), ("3,S,4,f32", "S,3,f32")),
]
