"""Cases of the operators that arrange elements in a shape that is an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.reshape import DynReshape
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


B, S, N, M = (symbol(name) for name in "BSNM")


def _case(op: DynReshape, fact: str, shape: Sequence[int], wanted: Sequence[int], note: str = "") -> Case:
    """Elements are compared in row-major order, and the shape with the one written down."""

    def expected(x: Array, _: Array) -> Array:
        result = np.empty(wanted, dtype=x.dtype)
        result.flat[:] = list(x.flat)
        return result

    sizes = {"B": 2, "S": 6, "N": wanted[0], "M": wanted[-1]}
    name = f"DynReshape-{fact}-{','.join(map(str, shape))}{note}"
    return Case(name, op, [fact, Arg(f"{len(shape)},i64", shape)], expected, sizes)


_CASES = [
    _case(DynReshape((N, M)), "B,S,f32", [3, 4], [3, 4]),
    _case(DynReshape((N, M)), "B,S,f32", [-1, 3], [4, 3]),
    _case(DynReshape((N, M)), "B,S,f16", [0, -1], [2, 6]),
    _case(DynReshape((N, 2, M)), "B,S,i64", [0, 2, 3], [2, 2, 3]),
    _case(DynReshape((B * S,)), "B,S,bool", [-1], [12]),
    _case(DynReshape((N, 5), allow_zero=True), "0,5,f32", [0, 5], [0, 5], "-zero"),
]

ROWS.add(CASES, "reshape", _CASES)
