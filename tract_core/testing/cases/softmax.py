"""Cases of softmax and its logarithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SIZES = {"B": 2, "S": 5}


def _softmax(axes: tuple[int, ...]) -> Any:
    return lambda x: np.exp(x) / np.exp(x).sum(axis=axes, keepdims=True)


def _case(axes: tuple[int, ...], fact: str) -> list[Case]:
    plain, logarithm = _softmax(axes), lambda x: np.log(_softmax(axes)(x))
    return [
        Case(f"Softmax-{axes}-{fact}", Softmax(axes), [fact], plain, _SIZES),
        Case(f"LogSoftmax-{axes}-{fact}", LogSoftmax(axes), [fact], logarithm, _SIZES),
    ]


_CASES = [
    *_case((1,), "B,S,f32"),
    *_case((0,), "B,S,f32"),
    *_case((1, 2), "B,3,S,f32"),
    *_case((2,), "B,3,S,f64"),
    *_case((1,), "B,S,f16"),
    *_case((0,), "S,bf16"),
    Case("Softmax-large", Softmax((0,)), [Arg("2,f32", [1e4, 1e4])], lambda _: np.array([0.5, 0.5])),
    Case("Softmax-masked", Softmax((0,)), [Arg("3,f32", [0, -np.inf, 0])], lambda _: np.array([0.5, 0, 0.5])),
    Case("LogSoftmax-large", LogSoftmax((0,)), [Arg("2,f32", [0, 1e4])], lambda _: np.array([-1e4, 0])),
    Case("LogSoftmax-far", LogSoftmax((0,)), [Arg("2,f32", [0, 20])], lambda _: -np.log1p(np.exp([20.0, -20.0]))),
    Case("Softmax-nothing", Softmax((1,)), ["B,0,f32"], lambda x: x, _SIZES),
    Case("Softmax-thirds", Softmax((0,)), [Arg("2,f32", [0, math.log(2)])], lambda _: np.array([1 / 3, 2 / 3])),
]

ROWS.add(CASES, "softmax", _CASES)
