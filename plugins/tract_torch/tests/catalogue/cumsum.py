"""Operators of PyTorch that go along an axis, in the catalogue."""

from __future__ import annotations

from catalogue.entry import one

ENTRIES = [
    one(lambda x: x.cumsum(-1), "cumsum", shape="S,4,f32"),
    one(lambda x: x.cumsum(0), "cumsum, integers", shape="S,4,i32"),
    one(lambda x: x.cumsum(0), "cumsum, booleans", shape="S,4,bool"),
    one(lambda x: x.sum().cumsum(0), "cumsum, a number"),
    one(lambda x: x.cumprod(0), "cumprod"),
    one(lambda x: x.cumprod(1), "cumprod, integers", shape="S,4,u8"),
    one(lambda x: x.cummax(1), "cummax", shape="S,6,f32"),
    one(lambda x: x.cummax(0), "cummax, equal ones", "integers", "S,6,i64"),
    one(lambda x: x.cummax(0), "cummax, NaN", "special"),
    one(lambda x: x.cummax(1), "cummax, booleans", shape="S,6,bool"),
    one(lambda x: x.cummin(0), "cummin", shape="S,6,f16"),
    one(lambda x: x.cummin(1), "cummin, equal ones", "integers", "S,6,f32"),
    one(lambda x: x.cummin(1), "cummin, NaN", "special", "2,S,f64"),
    one(lambda x: x.logcumsumexp(1), "logcumsumexp", shape="S,4,f32"),
    one(lambda x: (x * 500).logcumsumexp(0), "logcumsumexp, large"),
    one(lambda x: x.logcumsumexp(0), "logcumsumexp, special", "special"),
    one(lambda x: x.diff(dim=0), "diff"),
    one(lambda x: x.diff(n=2, prepend=x[:, :1]), "diff, twice", shape="S,4,f32"),
]
