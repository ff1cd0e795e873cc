"""Cases of the operators that keep one side of a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _case(upper: bool, k: int, fact: str) -> Case:
    """Element by element."""

    def expected(x: Array, _: Array) -> Array:
        result = np.zeros_like(x)
        for place in np.ndindex(*x.shape):
            row, column = place[-2:]
            if (column >= row + k) if upper else (column <= row + k):
                result[place] = x[place]
        return result

    name = f"Trilu-{'upper' if upper else 'lower'}-{k}-{fact}"
    return Case(name, Trilu(upper), [fact, Arg("i64", [k])], expected, {"B": 2, "S": 4})


_CASES = [
    *(_case(upper, k, "S,S,f32") for upper in (True, False) for k in (0, 1, -2, 9, -9)),
    _case(True, 1, "B,3,S,5,f32"),
    _case(False, -1, "B,5,3,f16"),
    _case(True, 0, "S,3,i64"),
    _case(False, 0, "S,S,bool"),
]

ROWS.add(CASES, "trilu", _CASES)
