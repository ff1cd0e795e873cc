"""Cases of the operator that moves axes which are an input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.axis_dyn import DynMoveAxes
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]

B, S, N, M, K = (symbol(name) for name in "BSNMK")
VALUES = {"B": 2, "S": 3}


def _expected(order: Sequence[int]) -> Callable[..., Array]:
    """Element by element. ``order``: for each output axis, the input axis."""

    def expected(x: Array, *_: Array) -> Array:
        result = np.empty([x.shape[axis] for axis in order], dtype=x.dtype)
        for place in np.ndindex(*x.shape):
            result[tuple(place[axis] for axis in order)] = x[place]
        return result

    return expected


def _case(name: str, axes: Sequence[int], order: Sequence[int], kind: str = "f32", *, back: bool = False) -> Case:
    """Sizes 2, 3 and 4; ``order``: where each output axis comes from."""
    sizes = dict(zip("NMK", ((2, 3, 4)[axis] for axis in order), strict=True))
    inputs = [f"B,S,4,{kind}", Arg(f"{len(axes)},i64", list(axes))]
    return Case(f"DynMoveAxes-{name}", DynMoveAxes((N, M, K), back), inputs, _expected(order), {**VALUES, **sizes})


_CASES = [
    _case("first", [0], [1, 2, 0]),
    _case("two-in-their-order", [1, 0], [2, 1, 0], "f16"),
    _case("negative", [-2], [0, 2, 1], "i32"),
    _case("none", [], [0, 1, 2], "bool"),
    _case("all", [2, 0, 1], [2, 0, 1]),
    _case("first-back", [0], [2, 0, 1], back=True),
    _case("two-back", [1, 0], [2, 1, 0], back=True),
    _case("all-back", [2, 0, 1], [1, 2, 0], back=True),
    Case(
        "DynMoveAxes-known-sizes",
        DynMoveAxes((B, S)),
        ["B,S,u8", Arg("1,i32", [1])],
        _expected([0, 1]),
        VALUES,
    ),
]

ROWS.add(CASES, "axis_dyn", _CASES)
