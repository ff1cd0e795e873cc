"""Cases of the operators that keep running sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumMin, CumProd, CumSum, Running
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _expected(op: Running, join: Callable[[Sequence[Any]], Any] = sum) -> Callable[..., Array]:
    """Element by element: what ``join`` makes of those that count."""

    def expected(x: Array) -> Array:
        result = np.zeros_like(x)
        size = x.shape[op.axis]
        for place in np.ndindex(*x.shape):
            here = place[op.axis]
            first, last = (here, size) if op.reverse else (0, here + 1)
            others = [i for i in range(first, last) if not (op.exclusive and i == here)]
            result[place] = join([x[(*place[: op.axis], i, *place[op.axis + 1 :])] for i in others])
        return result

    return expected


def _case(op: Running, fact: str, join: Callable[[Sequence[Any]], Any] = sum) -> Case:
    return Case(f"{op}-{fact}", op, [fact], _expected(op, join), {"B": 2, "S": 5})


def _log_of_sum(terms: Sequence[Any]) -> Any:
    return np.log(np.sum(np.exp(terms)))


_CASES = [
    *(
        _case(CumSum(axis, exclusive, reverse), "B,S,3,f32")
        for axis in (0, 1, 2)
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    _case(CumSum(0), "S,i64"),
    _case(CumSum(0, exclusive=True), "S,i32"),
    _case(CumSum(1), "B,S,f16"),
    _case(CumSum(0), "S,bf16"),
    _case(CumSum(0), "S,f64"),
    _case(CumSum(0, exclusive=True), "0,f32"),
    *(
        _case(kind(1, reverse=reverse), fact, join)
        for kind, join in ((CumProd, np.prod), (CumMax, max), (CumMin, min), (CumLogSumExp, _log_of_sum))
        for reverse, fact in ((False, "B,S,3,f32"), (True, "B,S,f64"), (False, "B,S,f16"))
    ),
    *(_case(kind(0), "S,i32", join) for kind, join in ((CumProd, np.prod), (CumMax, max), (CumMin, min))),
    _case(CumProd(0, exclusive=True), "S,f32", np.prod),
    Case("CumMax-NaN", CumMax(0), [Arg("4,f32", [1, 3, np.nan, 2])], lambda _: np.array([1, 3, np.nan, np.nan])),
    Case(
        "CumMax-zeros",
        CumMax(0),
        [Arg("5,f32", [-1, -0.0, 0.0, -0.0, 1])],
        lambda _: np.array([-1, -0.0, 0.0, 0.0, 1]),
        signed_zeros=True,
    ),
    Case(
        "CumMin-zeros",
        CumMin(0),
        [Arg("5,f32", [1, 0.0, -0.0, 0.0, -1])],
        lambda _: np.array([1, 0.0, -0.0, -0.0, -1]),
        signed_zeros=True,
    ),
    Case(
        "CumSum-zeros",
        CumSum(0),
        [Arg("3,f32", [-0.0, -0.0, -1])],
        lambda _: np.array([0.0, 0.0, -1]),
        signed_zeros=True,
    ),
    _case(CumMax(0, exclusive=True), "S,f32", partial(max, default=-np.inf)),
    _case(CumMin(0, exclusive=True), "S,u8", partial(min, default=255)),
    Case("CumMin-NaN", CumMin(0), [Arg("4,f32", [1, 3, np.nan, 2])], lambda _: np.array([1, 1, np.nan, np.nan])),
    Case(
        "CumLogSumExp-large",
        CumLogSumExp(0),
        [Arg("3,f32", [-np.inf, 1000, 1000])],
        lambda _: np.array([-np.inf, 1000, 1000 + np.log(2)]),
    ),
    Case(
        "CumSum-f16-rounds-once",
        CumSum(0),
        [Arg("4,f16", [2048, 1, 1, 1])],
        lambda _: np.array([2048.0, 2048, 2050, 2052]),
    ),
]

ROWS.add(CASES, "cumsum", _CASES)
