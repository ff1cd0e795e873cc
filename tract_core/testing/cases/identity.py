"""Cases of the operators that hand on what they get."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.model.identity import Identity, PinConst
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


_CASES = [
    Case("Identity", Identity(), ["B,3,f32"], lambda x: x, {"B": 2}),
    Case("Identity-scalar", Identity(), ["i64"], lambda x: x),
    Case("PinConst", PinConst(), ["B,3,f16"], lambda x: x, {"B": 2}),
    Case("PinConst-constant", PinConst(), [Arg("2,i64", [4, 5], constant=True)], lambda _: np.array([4, 5])),
]

ROWS.add(CASES, "identity", _CASES)
