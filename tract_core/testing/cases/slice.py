"""Cases of the operators that take a range of an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.slice import DynSlice, Slice
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


S, N = symbol("S"), symbol("N")


def _i64(value: int) -> Arg:
    return Arg("i64", [value])


_CASES = [
    Case("Slice-first-axis", Slice(0, 1, 3), ["4,S,f32"], lambda x: np.stack([x[1], x[2]]), {"S": 3}),
    Case("Slice-last-axis", Slice(2, 1, 2), ["B,2,S,f32"], lambda x: np.expand_dims(x[..., 1], 2), {"B": 2, "S": 3}),
    Case("Slice-to-symbol", Slice(1, 2, S), ["2,S,f16"], lambda x: x[:, 2:], {"S": 5}),
    Case("Slice-from-symbol", Slice(1, S - 1, S), ["2,S,f32"], lambda x: x[:, -1:], {"S": 5}),
    Case("Slice-empty", Slice(0, 2, 2), ["4,3,f32"], lambda _: np.zeros((0, 3))),
    Case("Slice-whole", Slice(0, 0, 4), ["4,3,i32"], lambda x: x),
    Case("Slice-half", Slice(0, 0, S), ["2*S,f32"], lambda x: x[:3], {"S": 3}),
    Case(
        "Slice-strings",
        Slice(0, 1, 3),
        [Arg("3,string", ["a", "b", "c"])],
        lambda _: np.array(["b", "c"], dtype=object),
    ),
    Case(
        "DynSlice-middle",
        DynSlice(1, N),
        ["B,6,f32", _i64(2), _i64(5)],
        lambda x, *_: np.stack([x[:, 2], x[:, 3], x[:, 4]], 1),
        {"B": 2, "N": 3},
    ),
    Case(
        "DynSlice-empty",
        DynSlice(0, N),
        ["S,2,f32", _i64(4), _i64(4)],
        lambda *_: np.zeros((0, 2)),
        {"S": 4, "N": 0},
    ),
    Case(
        "DynSlice-known-length",
        DynSlice(0, 2),
        ["S,bool", Arg("i32", [1]), Arg("i32", [3])],
        lambda x, *_: x[1:3],
        {"S": 4},
    ),
    Case(
        "DynSlice-length-of-an-input",
        DynSlice(0, S - 1),
        ["S,f32", _i64(1), _i64(4)],
        lambda x, *_: x[1:],
        {"S": 4},
    ),
]

ROWS.add(CASES, "slice", _CASES)
