"""Cases of the operators that make numbers at equal distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


N = symbol("N")


def _case(kind: str, start: float, end: float, step: float, wanted: Sequence[float], *, constant: bool = False) -> Case:
    """The result written down."""
    inputs = [Arg(kind, [number], constant=constant) for number in (start, end, step)]
    name = f"Range-{kind}-{start}-{end}-{step}" + ("-constant" if constant else "")
    return Case(name, Range(N), inputs, lambda *_: np.array(wanted), {"N": len(wanted)})


_CASES = [
    _case("i64", 0, 5, 1, [0, 1, 2, 3, 4]),
    _case("i64", 1, 8, 3, [1, 4, 7]),
    _case("i64", 1, 7, 3, [1, 4]),
    _case("i64", 5, 0, -2, [5, 3, 1]),
    _case("i32", -3, 2, 2, [-3, -1, 1]),
    _case("i64", 3, 3, 1, []),
    _case("i64", 3, 0, 1, []),
    _case("f32", 0, 1, 0.25, [0, 0.25, 0.5, 0.75]),
    _case("f32", 1, -0.5, -0.5, [1, 0.5, 0]),
    _case("f32", 0, 2.5, 1, [0, 1, 2]),
    _case("f16", 0, 2, 0.5, [0, 0.5, 1, 1.5]),
    _case("bf16", 1, 3, 1, [1, 2]),
    _case("f64", 10, 11, 0.5, [10, 10.5]),
    _case("i64", 2, 8, 2, [2, 4, 6], constant=True),
]

ROWS.add(CASES, "range", _CASES)
