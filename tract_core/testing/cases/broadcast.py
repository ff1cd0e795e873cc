"""Cases of the operators that stretch axes of size 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


B, S = symbol("B"), symbol("S")


def _case(op: MultiBroadcastTo, fact: str, *shape: int) -> Case:
    """Element by element: coordinate 0 on an axis of size 1; the shape is written down."""

    def expected(x: Array) -> Array:
        result = np.empty(shape, dtype=x.dtype)
        for place in np.ndindex(*shape):
            own = place[len(shape) - x.ndim :]
            result[place] = x[tuple(0 if size == 1 else i for i, size in zip(own, x.shape, strict=True))]
        return result

    return Case(f"MultiBroadcastTo-{fact}-{'x'.join(map(str, shape))}", op, [fact], expected, {"B": 2, "S": 3})


_CASES = [
    _case(MultiBroadcastTo((4, S)), "1,S,f32", 4, 3),
    _case(MultiBroadcastTo((4, B, S)), "B,S,f16", 4, 2, 3),
    _case(MultiBroadcastTo((2, 3)), "i64", 2, 3),
    _case(MultiBroadcastTo((1, 1, 1)), "B,S,bool", 1, 2, 3),
    _case(MultiBroadcastTo((B, 1, 3)), "B,4,1,f32", 2, 4, 3),
    _case(MultiBroadcastTo((B, 2 * B)), "B,1,bf16", 2, 4),
    _case(MultiBroadcastTo((S,)), "S,f32", 3),
    _case(MultiBroadcastTo((0, S)), "1,S,f32", 0, 3),
]

ROWS.add(CASES, "broadcast", _CASES)
