"""Cases of the operators that are part of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.const import Const
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _case(kind: DatumType, values: Any) -> Case:
    array = np.array(values, dtype=kind.numpy)
    return Case(f"Const-{kind.short}-{array.ndim}", Const(Constant(array)), [], lambda: np.array(values))


_CASES = [
    _case(DatumType.F32, [[1.5, -2.0], [0.0, 3.0]]),
    _case(DatumType.F16, 0.5),
    _case(DatumType.BF16, [0.5, 2.0]),
    _case(DatumType.I64, [1, 2**60]),
    _case(DatumType.BOOL, [True, False]),
    _case(DatumType.COMPLEX_F32, [1 + 2j]),
    Case(
        "Const-strings",
        Const(Constant(np.array(["a", "b"], dtype=object))),
        [],
        lambda: np.array(["a", "b"], dtype=object),
    ),
]

ROWS.add(CASES, "const", _CASES)
