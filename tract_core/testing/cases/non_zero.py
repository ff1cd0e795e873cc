"""Cases of the operators that say where elements are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.non_zero import NonZero
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


N = symbol("N")


def _case(fact: str, values: Any, wanted: Any, sizes: dict[str, int]) -> Case:
    """The places written down, a row per axis."""
    places = np.array(wanted, dtype=np.int64)
    name = f"NonZero-{fact}-{places.shape[1]}"
    return Case(name, NonZero(N), [Arg(fact, values)], lambda _: places, {"N": places.shape[1], **sizes})


_CASES = [
    _case("2,S,f32", [1, 0, -2, 0, 0, 3], [[0, 0, 1], [0, 2, 2]], {"S": 3}),
    _case("S,bool", [True, False, True], [[0, 2]], {"S": 3}),
    _case("S,i64", [0, 0], [[]], {"S": 2}),
    _case("S,f16", [float("nan"), 0, -0.0, 1e-7], [[0, 3]], {"S": 4}),
    _case("1,2,2,i32", [0, 1, 1, 0], [[0, 0], [0, 1], [1, 0]], {}),
]

ROWS.add(CASES, "non_zero", _CASES)
