"""Cases of the element-wise operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tract_core.ops import elementwise as ops
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _case(op: ops.ElementWise, expected: Any, fact: str = "B,3,S,f32", low: float = -2, high: float = 2) -> Case:
    name = f"{type(op).__name__}-{fact}-{op}"
    return Case(name, op, [Arg(fact, low=low, high=high)], expected, {"B": 2, "S": 5})


_CASES = [
    _case(ops.Exp(), np.exp),
    _case(ops.Exp(), np.exp, "B,f16"),
    _case(ops.Exp(), np.exp, "B,bf16"),
    _case(ops.Exp(), np.exp, "f64"),
    _case(ops.Ln(), np.log, low=0.1),
    _case(ops.Sqrt(), np.sqrt, low=0),
    _case(ops.Recip(), lambda x: 1 / x, low=0.5),
    _case(ops.Rsqrt(), lambda x: x**-0.5, low=0.5),
    _case(ops.Ceil(), np.ceil),
    _case(ops.Floor(), np.floor),
    _case(ops.Cos(), np.cos),
    _case(ops.Sin(), np.sin),
    _case(ops.Tan(), np.tan, low=-1, high=1),
    _case(ops.Acos(), np.arccos, low=-1, high=1),
    _case(ops.Asin(), np.arcsin, low=-1, high=1),
    _case(ops.Atan(), np.arctan),
    _case(ops.Cosh(), np.cosh),
    _case(ops.Sinh(), np.sinh),
    _case(ops.Tanh(), np.tanh),
    _case(ops.Tanh(), np.tanh, "B,S,f16"),
    _case(ops.Acosh(), np.arccosh, low=1.1),
    _case(ops.Asinh(), np.arcsinh),
    _case(ops.Atanh(), np.arctanh, low=-0.9, high=0.9),
    _case(ops.Erf(), _erf),
    _case(ops.Sigmoid(), _sigmoid),
    _case(ops.Sigmoid(), _sigmoid, "B,f16"),
    _case(ops.HardSwish(), lambda x: x * np.clip(x + 3, 0, 6) / 6, low=-5, high=5),
    _case(ops.Silu(), lambda x: x * _sigmoid(x)),
    _case(ops.GeluExact(), lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
    _case(ops.GeluApproximate(), _gelu_tanh),
    _case(ops.PowConst(3.0), lambda x: x**3),
    _case(ops.LeakyRelu(0.1), lambda x: np.maximum(x, 0) + 0.1 * np.minimum(x, 0)),
    _case(ops.Abs(), np.abs),
    _case(ops.Abs(), np.abs, "B,i32"),
    _case(ops.Abs(), np.abs, "B,S,u8", low=0, high=255),
    _case(ops.Square(), lambda x: x * x),
    _case(ops.Square(), lambda x: x * x, "B,i64"),
    _case(ops.Neg(), lambda x: -x),
    _case(ops.Sign(), np.sign),
    _case(ops.Sign(), np.sign, "B,S,u8", low=0, high=255),
    _case(ops.Not(), np.logical_not, "B,S,bool"),
    _case(ops.BitNot(), lambda x: -1 - x, "B,S,i32"),
    Case(
        "Round-halves",
        ops.Round(),
        [Arg("6,f32", [-2.5, -0.5, 0.5, 1.5, 2.5, 0.49999997])],
        lambda _: np.array([-3, -1, 1, 2, 3, 0.0]),
    ),
    Case(
        "RoundHalfToEven-halves",
        ops.RoundHalfToEven(),
        [Arg("6,f32", [-2.5, -0.5, 0.5, 1.5, 2.5, 3.5])],
        lambda _: np.array([-2, 0, 0, 2, 2, 4.0]),
    ),
    Case("Sigmoid-extremes", ops.Sigmoid(), [Arg("2,f32", [-1e4, 1e4])], lambda _: np.array([0.0, 1.0])),
    Case("IsNan", ops.IsNan(), [Arg("3,f32", [1, math.nan, math.inf])], lambda _: np.array([False, True, False])),
    Case(
        "IsInf-positive",
        ops.IsInf(detect_negative=False),
        [Arg("4,f32", [1, math.nan, math.inf, -math.inf])],
        lambda _: np.array([False, False, True, False]),
    ),
    Case(
        "IsInf-both",
        ops.IsInf(),
        [Arg("4,f32", [1, math.nan, math.inf, -math.inf])],
        lambda _: np.array([False, False, True, True]),
    ),
]

ROWS.add(CASES, "elementwise", _CASES)
