"""Cases of the operators that keep what a mask selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.compress import Compress
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


N = symbol("N")


def _case(axis: int, fact: str, mask: Sequence[bool]) -> Case:
    """Slice by slice, those whose flag is set."""
    kept = [position for position, flag in enumerate(mask) if flag]

    def expected(x: Array, _: Array) -> Array:
        slices = np.moveaxis(x, axis, 0)
        result = np.empty((len(kept), *slices.shape[1:]), dtype=x.dtype)
        for count, position in enumerate(kept):
            result[count] = slices[position]
        return np.moveaxis(result, 0, axis)

    inputs = [fact, Arg(f"{len(mask)},bool", mask)]
    name = f"Compress-{axis}-{fact}-{''.join('01'[flag] for flag in mask)}"
    return Case(name, Compress(axis, N), inputs, expected, {"B": 2, "S": 4, "N": len(kept)})


_CASES = [
    _case(0, "S,3,f32", [True, False, False, True]),
    _case(1, "B,S,f32", [False, True, True, True]),
    _case(1, "B,S,f16", [True]),
    _case(0, "S,i64", [False, False, False, False]),
    _case(2, "B,2,S,bool", [True, True, True, True]),
]

ROWS.add(CASES, "compress", _CASES)
