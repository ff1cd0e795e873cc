"""Cases of the different elements of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.unique import Unique
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

N = symbol("N")


def _case(op: Unique, fact: str, x: list[Any], *wanted: list[Any]) -> Case:
    arrays = tuple(np.array(one) for one in wanted)
    return Case(f"{op}-{fact}-{x}", op, [Arg(fact, x)], lambda _: arrays, {"S": len(x), "N": len(wanted[0])})


_ROWS = [[2, 1], [0, 3], [2, 1]]
_NANS = [np.nan, 1, np.nan]

_CASES = [
    _case(Unique(None, True, N), "S,i64", [3, 1, 3, 2], [1, 2, 3], [1, 3, 0], [2, 0, 2, 1], [1, 1, 2]),
    _case(Unique(None, False, N), "S,f32", [3, 1, 3, 2], [3, 1, 2], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]),
    _case(Unique(0, True, N), "S,2,i32", _ROWS, [[0, 3], [2, 1]], [1, 0], [1, 0, 1], [1, 2]),
    _case(Unique(None, True, N), "S,f32", _NANS, [1, np.nan], [1, 0], [1, 0, 1], [1, 2]),
    _case(Unique(None, True, N, joins_nans=False), "S,f32", _NANS, [1, *_NANS[::2]], [1, 0, 2], [1, 0, 2], [1, 1, 1]),
]

ROWS.add(CASES, "unique", _CASES)
