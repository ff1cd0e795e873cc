"""Operators of PyTorch whose results have sizes that depend on elements, in the catalogue."""

from __future__ import annotations

import torch

from catalogue.entry import Entry, one


def checked(x: torch.Tensor) -> torch.Tensor:
    """The first places, of which there are at least two."""
    places = torch.cat([x, x + 1]).nonzero()
    torch._check(places.shape[0] >= 2)
    return places[:2] * 2


ENTRIES = [
    one(lambda x: x.nonzero(), "nonzero", "integers"),
    one(lambda x: x.nonzero(), "nonzero, booleans", shape="S,4,2,bool"),
    one(lambda x: x.nonzero(), "nonzero, NaN", "special", "S,f32"),
    one(lambda x: (x > 100).nonzero(), "nonzero, nothing"),
    one(lambda x: x.sum().nonzero(), "nonzero, a number"),
    one(lambda x: torch.nonzero(x, as_tuple=True), "nonzero_numpy", "integers"),
    one(lambda x: torch.cat([x.nonzero(), x.nonzero() * 2, x.nonzero()]), "nonzero, three times", "integers"),
    Entry("nonzero, one mask twice", lambda x, y: (x[x > 0] + y[x > 0]).sum(), ("S,3,f32", "S,3,f32")),
    Entry("nonzero, a mask of rows", lambda x, y, m: x[m] @ y[m].T, ("S,3,f32", "S,3,f32", "S,bool"), tolerance=1e-4),
    one(torch.argwhere, "argwhere", "integers"),
    one(lambda x: torch.where(x > 0)[1], "where, places"),
    one(lambda x: x.gather(0, (x[:, 0] > -100).nonzero()), "nonzero, read again"),
    one(checked, "nonzero, with an assertion", "integers"),
    one(lambda x: torch.nonzero_static(x, size=4), "nonzero_static", "integers"),
    one(lambda x: torch.nonzero_static(x > 1, size=7, fill_value=-5), "nonzero_static, filled"),
    one(lambda x: x.count_nonzero(), "count_nonzero", "integers"),
    one(lambda x: x.count_nonzero(1), "count_nonzero, rows", "integers"),
    one(torch.unique, "unique", "integers"),
    one(lambda x: torch.unique(x, return_inverse=True), "unique, inverse", "integers", "S,3,i64"),
    one(lambda x: torch.unique(x, return_counts=True), "unique, counts", "integers", "S,3,i32"),
    one(lambda x: torch.unique(x, return_inverse=True, return_counts=True), "unique, NaN", "special"),
    one(lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True), "unique_dim", "integers", "S,2,i64"),
    one(lambda x: torch.unique(x, dim=1), "unique_dim, columns", "integers", "2,S,f32"),
    one(torch.unique_consecutive, "unique_consecutive", "integers", "S,2,i64"),
    one(
        lambda x: torch.unique_consecutive(x > 0, return_inverse=True, return_counts=True),
        "unique_consecutive, all outputs",
    ),
    one(
        lambda x: torch.unique_consecutive(x.sign(), dim=0, return_inverse=True, return_counts=True),
        "unique_consecutive, rows",
        shape="S,1,f32",
    ),
    one(lambda x: x.bincount(), "bincount", "below 6", "S,i64"),
    one(lambda x: x.bincount(minlength=9), "bincount, at least", "below 6", "S,i32"),
    Entry("bincount, weights", lambda i, w: i.bincount(w), ("S,i64:below 4", "S,f32")),
    one(lambda x: x.histc(5, -1, 1), "histc"),
    one(lambda x: x.histc(4), "histc, from the least", shape="S,9,f32"),
    one(lambda x: x.round().histc(3, -1, 2), "histc, on the bounds", shape="S,9,f64"),
    one(lambda x: (x * 0 + 2).histc(3), "histc, one number"),
    one(lambda x: x.histc(3, -2, 2), "histc, NaN", "special"),
]
