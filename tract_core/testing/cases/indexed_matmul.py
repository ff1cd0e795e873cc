"""Cases of products whose matrix is chosen for each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _expected(x: Array, weights: Array, which: Array) -> Array:
    """Row by row."""
    result = np.zeros((*which.shape, weights.shape[1]))
    for place in np.ndindex(*which.shape):
        row = x[tuple(0 if size == 1 else one for size, one in zip(x.shape, place, strict=False))]
        for column in range(weights.shape[1]):
            result[(*place, column)] = (weights[int(which[place]), column] * row).sum()
    return result


def _case(
    x: str, weights: str, which: str, *, known: bool = True, last: int = 2, first: int = 0, name: str = ""
) -> Case:
    """``known``: whether weights are part of the model. ``first``, ``last``: between which indices are."""
    given = [x, Arg(weights, constant=known), Arg(which, low=first, high=last)]
    label = f"IndexedMatMul-{x}-{weights}-{which}{name}"
    return Case(label, IndexedMatMul(), given, _expected, {"B": 2, "S": 5, "E": 3, "K": 7})


_CASES = [
    _case("S,7,f32", "3,5,7,f32", "S,i64"),
    _case("B,S,1,7,f32", "3,33,7,f32", "B,S,2,i64"),
    _case("B,S,2,7,f32", "3,16,7,f32", "B,S,2,i32", first=-3, name="-from-the-end"),
    _case("S,7,f32", "3,5,7,f32", "S,i64", last=0, name="-all-alike"),
    _case("S,K,f32", "E,4,K,f32", "S,i64", known=False),
    _case("S,7,f16", "3,5,7,f16", "S,i64"),
    _case("S,7,bf16", "3,5,7,bf16", "S,u8", known=False),
    _case("0,7,f32", "3,5,7,f32", "0,i64"),
    _case("S,1,f32", "3,1,1,f32", "S,i64"),
    _case("7,f32", "3,5,7,f32", "i64"),
    _case("S,0,f32", "2,3,0,f32", "S,i64", last=1),
]

ROWS.add(CASES, "indexed_matmul", _CASES)
