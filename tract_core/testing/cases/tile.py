"""Cases of the operators that repeat a tensor along its axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.tile import DynTile, Tile
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


B, S, N, M = (symbol(name) for name in "BSNM")


def _expected(counts: Sequence[int]) -> Callable[..., Array]:
    """Element by element: the coordinates modulo the sizes."""

    def expected(x: Array, *_: Array) -> Array:
        shape = [size * count for size, count in zip(x.shape, counts, strict=True)]
        result = np.empty(shape, dtype=x.dtype)
        for place in np.ndindex(*shape):
            result[place] = x[tuple(i % size for i, size in zip(place, x.shape, strict=True))]
        return result

    return expected


def _case(counts: Sequence[int], fact: str) -> Case:
    name = f"Tile-{'x'.join(map(str, counts))}-{fact}"
    return Case(name, Tile(tuple(counts)), [fact], _expected(counts), {"B": 2, "S": 3})


_CASES = [
    _case([2, 3], "B,S,f32"),
    _case([1, 1, 2], "B,S,2,f16"),
    _case([3], "S,i64"),
    _case([1, 0], "B,S,f32"),
    _case([], "f32"),
    _case([1, 2], "B,S,bool"),
    Case("Tile-symbolic", Tile((S, 1)), ["1,S,f32"], _expected([3, 1]), {"S": 3}),
    Case(
        "DynTile-two-axes",
        DynTile((N, M)),
        ["B,S,f32", Arg("2,i64", [2, 3])],
        _expected([2, 3]),
        {"B": 2, "S": 3, "N": 4, "M": 9},
    ),
    Case("DynTile-known", DynTile((B, 2 * S)), ["B,S,u8", Arg("2,i32", [1, 2])], _expected([1, 2]), {"B": 2, "S": 3}),
]

ROWS.add(CASES, "tile", _CASES)
