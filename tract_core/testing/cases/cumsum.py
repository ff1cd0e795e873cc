"""Cases of the operators that keep running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tract_core.ops.cumsum import CumSum
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _expected(op: CumSum) -> Callable[..., Array]:
    """Element by element: the sum of those that count."""

    def expected(x: Array) -> Array:
        result = np.zeros_like(x)
        size = x.shape[op.axis]
        for place in np.ndindex(*x.shape):
            here = place[op.axis]
            first, last = (here, size) if op.reverse else (0, here + 1)
            others = [i for i in range(first, last) if not (op.exclusive and i == here)]
            result[place] = sum(x[(*place[: op.axis], i, *place[op.axis + 1 :])] for i in others)
        return result

    return expected


def _case(op: CumSum, fact: str) -> Case:
    return Case(f"{op}-{fact}", op, [fact], _expected(op), {"B": 2, "S": 5})


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
    Case(
        "CumSum-f16-rounds-once",
        CumSum(0),
        [Arg("4,f16", [2048, 1, 1, 1])],
        lambda _: np.array([2048.0, 2048, 2050, 2052]),
    ),
]

ROWS.add(CASES, "cumsum", _CASES)
