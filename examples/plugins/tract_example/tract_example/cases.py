"""What `Smooth` must compute, on any runtime: each output is a weighted sum of the inputs so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case
from tract_example.smooth import Smooth

ROWS = Rows()


def _weighted_sums(x: Any, axis: int, decay: Any) -> Any:
    """y[t] = sum over s <= t of (1 - decay) * decay**(t - s) * x[s]"""
    x = np.moveaxis(x, axis, 0)
    terms = [[(1 - decay) * decay ** (t - s) * x[s] for s in range(t + 1)] for t in range(len(x))]
    return np.moveaxis(np.array([np.sum(one, axis=0) for one in terms]), 0, axis)


def _case(fact: str, axis: int, decay: Any) -> Case:
    coefficients = np.array(decay, np.float32)

    def expected(x: Any) -> Any:
        return _weighted_sums(x, axis, coefficients.astype(np.float64))

    name = f"Smooth-{fact}-{axis}-{coefficients.tolist()}"
    return Case(name, Smooth(axis, Constant(coefficients)), [fact], expected, {"B": 2, "T": 7})


ROWS.add(
    CASES,
    "smooth",
    [
        _case("B,T,3,f32", 1, [0.5, 0.9, 0.0]),
        _case("T,f32", 0, 0.75),
        _case("B,3,5,T,f64", 3, [[0.5], [0.25], [0.125]]),
        _case("B,T,f16", 1, 0.5),
        Case(
            "Smooth-step",
            Smooth(0, Constant(np.array(0.5, np.float32))),
            [Arg("4,f32", [1, 1, 1, 1])],
            lambda *_: np.array([0.5, 0.75, 0.875, 0.9375]),
        ),
    ],
)
