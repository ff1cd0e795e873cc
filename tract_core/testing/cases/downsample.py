"""Cases of the operators that keep every n-th element of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _case(op: Downsample, fact: str, kept: Sequence[int]) -> Case:
    """``kept``: the positions that stay, written down."""

    def expected(x: Array) -> Array:
        axis = np.moveaxis(x, op.axis, 0)
        return np.moveaxis(np.stack([axis[position] for position in kept]), 0, op.axis)

    return Case(f"Downsample-{op.axis}-{op.stride}-{op.modulo}-{fact}", op, [fact], expected, {"B": 2, "S": 7})


_CASES = [
    _case(Downsample(1, 2), "B,S,3,f32", [0, 2, 4, 6]),
    _case(Downsample(1, 3), "B,S,f32", [0, 3, 6]),
    _case(Downsample(1, 3, 1), "B,S,f32", [1, 4]),
    _case(Downsample(1, 3, 2), "B,S,f32", [2, 5]),
    _case(Downsample(0, 10), "S,f16", [0]),
    _case(Downsample(0, 1), "S,i64", range(7)),
    _case(Downsample(0, -1), "S,2,f32", [6, 5, 4, 3, 2, 1, 0]),
    _case(Downsample(1, -2), "B,S,bool", [6, 4, 2, 0]),
    _case(Downsample(1, -3), "B,8,u8", [7, 4, 1]),
    Case("Downsample-all-left-out", Downsample(0, 2, 3), ["3,2,f32"], lambda _: np.zeros((0, 2))),
]

ROWS.add(CASES, "downsample", _CASES)
