"""Cases of the operators that draw numbers: those that a seed gives, and what does not depend on what is drawn."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.ops.random import Distribution, Dropout, Multinomial, RandomLike, RandomTensor
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_UNIFORM = [[-1.6947668425, 1.119675169, -0.2463630742], [0.8938607113, 1.911958048, 0.1539834816]]
_NORMAL = [[3.8452628519, 2.76703131473, 3.016410081839], [3.203758141498, 2.605538485687, 3.001032786453]]
"""What NumPy's RandomState(7) gives, between -2 and 2, and around 3 with a deviation of 0.5."""

_CASES = [
    Case(
        "RandomTensor-uniform",
        RandomTensor(Distribution.UNIFORM, -2.0, 2.0, DatumType.F32, 7, (2, 3)),
        [],
        lambda: np.array(_UNIFORM),
    ),
    Case(
        "RandomLike-normal",
        RandomLike(Distribution.NORMAL, 3.0, 0.5, DatumType.F64, 7),
        ["2,3,f32"],
        lambda _: np.array(_NORMAL),
    ),
    Case(
        "Multinomial-one-place-has-all",
        Multinomial(4, DatumType.I64, 1),
        [Arg("2,3,f32", [[-np.inf, 0, -np.inf], [-np.inf, -np.inf, 2]])],
        lambda _: np.array([[1] * 4, [2] * 4]),
    ),
    Case(
        "Dropout-of-nothing",
        Dropout(3),
        ["2,3,f32", Arg("f32", 0.5), Arg("bool", [False])],
        lambda x, *_: (x, np.ones((2, 3), bool)),
    ),
]

ROWS.add(CASES, "random", _CASES)
