"""Cases of the operators that fill a shape that is an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.ops.fill import DynFill
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


N, M = symbol("N"), symbol("M")


def _case(value: Any, shape: Sequence[int], kind: str = "i64") -> Case:
    sizes = (N, M)[: len(shape)]
    name = f"DynFill-{value!r}-{'x'.join(map(str, shape))}"
    op = DynFill(Constant(np.array(value)), sizes)

    def expected(_: Array) -> Array:
        return np.array([value] * int(np.prod(shape))).reshape(shape)

    return Case(name, op, [Arg(f"{len(shape)},{kind}", shape)], expected, dict(zip(("N", "M"), shape, strict=False)))


_CASES = [
    _case(np.float32(1.5), [2, 3]),
    _case(np.int64(-7), [4], "i32"),
    _case(np.bool_(True), [2, 2]),
    _case(np.float16(0), [0, 3]),
    _case(np.uint8(9), []),
]

ROWS.add(CASES, "fill", _CASES)
