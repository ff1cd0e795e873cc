"""Cases of the operators that turn integers into vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.ops.one_hot import DynOneHot, OneHot
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


N = symbol("N")


def _scalar(number: float, kind: Any = np.float32) -> Constant:
    return Constant(np.array(number, dtype=kind))


def _case(axis: int, dim: int, fact: str, off: float = 0, on: float = 1) -> Case:
    """``off`` everywhere, then ``on`` written where an index leads to, if it leads to a place."""

    def expected(indices: Array) -> Array:
        result = np.full((*indices.shape, dim), float(off))
        for place in np.ndindex(*indices.shape):
            if -dim <= indices[place] < dim:
                result[place][int(indices[place])] = on
        return np.moveaxis(result, -1, axis)

    op = OneHot(axis, dim, _scalar(off), _scalar(on))
    return Case(f"OneHot-{axis}-{dim}-{fact}", op, [Arg(fact, low=-dim - 1, high=dim + 1)], expected, {"B": 2, "S": 5})


_CASES = [
    _case(1, 3, "S,i64"),
    _case(0, 3, "S,i64"),
    _case(1, 4, "B,S,i32", 2, -5),
    _case(2, 4, "B,S,i64"),
    _case(0, 3, "i64"),
    _case(1, 3, "S,u8"),
    Case(
        "OneHot-symbolic-bool",
        OneHot(1, N, _scalar(0, np.bool_), _scalar(1, np.bool_)),
        [Arg("N,i64", [2, -3, 1])],
        lambda _: np.array([[False, False, True], [True, False, False], [False, True, False]]),
        {"N": 3},
    ),
    Case(
        "DynOneHot",
        DynOneHot(1, N, _scalar(0), _scalar(1)),
        [Arg("S,i64", [0, 2, 5]), Arg("i64", [3])],
        lambda *_: np.array([[1.0, 0, 0], [0, 0, 1], [0, 0, 0]]),
        {"S": 3, "N": 3},
    ),
]

ROWS.add(CASES, "one_hot", _CASES)
