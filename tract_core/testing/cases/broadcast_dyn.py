"""Cases of the operators that stretch axes to a shape that is an input."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.broadcast_dyn import DynBroadcast
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


B, S, N = (symbol(name) for name in "BSN")

_CASES = [
    Case(
        "DynBroadcast-one-axis",
        DynBroadcast((N, S)),
        ["1,S,f32", Arg("2,i64", [4, 3])],
        lambda x, _: np.concatenate([x] * 4),
        {"S": 3, "N": 4},
    ),
    Case(
        "DynBroadcast-shape-is-stretched",
        DynBroadcast((N, 3)),
        ["2,3,f32", Arg("2,i64", [1, 1])],
        lambda x, _: x,
        {"N": 2},
    ),
    Case(
        "DynBroadcast-more-axes",
        DynBroadcast((N, 2, S)),
        ["S,f16", Arg("3,i64", [2, 2, 1])],
        lambda x, _: np.stack([np.stack([x, x]), np.stack([x, x])]),
        {"S": 3, "N": 2},
    ),
    Case(
        "DynBroadcast-fewer-axes",
        DynBroadcast((B, N)),
        ["B,1,i64", Arg("1,i32", [3])],
        lambda x, _: np.concatenate([x] * 3, 1),
        {"B": 2, "N": 3},
    ),
]

ROWS.add(CASES, "broadcast_dyn", _CASES)
