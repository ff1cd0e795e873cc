"""Cases of the operators that check what was said of their input."""

from __future__ import annotations

from tract_core.dims import symbol
from tract_core.ops.check import CheckShape
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Case

ROWS = Rows()

_WHY = ("the case says so", "change the case")

_CASES = [
    Case("CheckShape", CheckShape((None, 3), *_WHY), ["B,N,f32"], lambda x: x, {"B": 2, "N": 3}),
    Case("CheckShape-nothing-left", CheckShape((2, None), *_WHY), ["2,N,i64"], lambda x: x, {"N": 0}),
    Case("CheckShape-symbol", CheckShape((symbol("B"), 1), *_WHY), ["N,B,f16"], lambda x: x, {"N": 1, "B": 1}),
    Case("CheckShape-scalar", CheckShape((), *_WHY), ["f64"], lambda x: x),
]

ROWS.add(CASES, "check", _CASES)
