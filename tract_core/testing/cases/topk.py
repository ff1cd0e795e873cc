"""Cases of the operators that find the largest or smallest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.topk import Topk
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


K = symbol("K")
_NAN = float("nan")


def _sorted(axis: int, largest: bool, k: int) -> Callable[..., Any]:
    """Row by row, with Python's stable sort of (value, position)."""

    def expected(x: Array, _: Array) -> Any:
        rows = np.moveaxis(x, axis, -1)
        values = np.empty((*rows.shape[:-1], k), dtype=x.dtype)
        positions = np.empty((*rows.shape[:-1], k), dtype=np.int64)
        for place in np.ndindex(*rows.shape[:-1]):
            row = rows[place].tolist()
            order = sorted(range(len(row)), key=lambda i: (-row[i] if largest else row[i], i))[:k]
            values[place], positions[place] = [row[i] for i in order], order
        return np.moveaxis(values, -1, axis), np.moveaxis(positions, -1, axis)

    return expected


def _case(axis: int, largest: bool, k: int, fact: str) -> Case:
    inputs = [Arg(fact, low=-3, high=3), Arg("i64", [k])]
    name = f"Topk-{axis}-{'largest' if largest else 'smallest'}-{k}-{fact}"
    return Case(name, Topk(axis, largest, K), inputs, _sorted(axis, largest, k), {"B": 2, "S": 6, "K": k})


def _written(
    name: str,
    largest: bool,
    row: Sequence[float],
    values: Sequence[float],
    positions: Sequence[int],
    *,
    kind: str = "f32",
) -> Case:
    return Case(
        f"Topk-{name}",
        Topk(0, largest, len(values)),
        [Arg(f"{len(row)},{kind}", row), Arg("i64", [len(values)], constant=True)],
        lambda *_: (np.array(values, dtype=np.float64), np.array(positions)),
    )


_CASES = [
    *(_case(1, largest, 3, "B,S,f32") for largest in (True, False)),
    *(_case(0, largest, 2, "S,3,f32") for largest in (True, False)),
    *(_case(1, largest, 4, "2,S,2,i64") for largest in (True, False)),
    *(_case(0, largest, 4, "S,u8") for largest in (True, False)),
    _case(0, True, 6, "S,f16"),
    _case(0, True, 1, "S,bf16"),
    _case(0, True, 0, "S,f32"),
    _written("ties-largest", True, [1, 3, 3, 2, 3], [3, 3, 3, 2], [1, 2, 4, 3]),
    _written("ties-smallest", False, [1, 1, 0, 1], [0, 1, 1], [2, 0, 1]),
    _written("nan-largest", True, [1, _NAN, 2], [_NAN, 2], [1, 2]),
    _written("nan-among-bf16", True, [1, _NAN, 3, _NAN, 2], [_NAN, _NAN, 3, 2], [1, 3, 2, 4], kind="bf16"),
    _written("nan-smallest", False, [1, _NAN, 2], [1, 2, _NAN], [0, 2, 1]),
]

ROWS.add(CASES, "topk", _CASES)
