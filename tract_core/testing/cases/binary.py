"""Cases of the operators that combine two tensors element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tract_core.ops import binary as ops
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


_SIZES = {"B": 2, "S": 3}


def _case(op: ops.Binary, expected: Callable[..., Any], *facts: str, low: float = -2, high: float = 2) -> Case:
    args = [Arg(fact, low=low, high=high) for fact in facts]
    return Case(f"{op.name}-{'-'.join(facts)}", op, args, expected, _SIZES)


def _written(
    op: ops.Binary, kind: str, a: Sequence[Any], b: Sequence[Any], wanted: Sequence[Any], *, note: str = ""
) -> Case:
    """The result written down."""
    args = [Arg(f"{len(a)},{kind}", a), Arg(f"{len(b)},{kind}", b)]
    return Case(f"{op.name}-{kind}-written{note}", op, args, lambda *_: np.array(wanted))


_ARITHMETIC: Sequence[tuple[ops.Binary, Callable[..., Any]]] = (
    (ops.Add(), lambda a, b: a + b),
    (ops.Sub(), lambda a, b: a - b),
    (ops.SubF(), lambda a, b: b - a),
    (ops.Mul(), lambda a, b: a * b),
    (ops.Min(), lambda a, b: np.where(a < b, a, b)),
    (ops.Max(), lambda a, b: np.where(a > b, a, b)),
)
_COMPARISONS: Sequence[tuple[ops.Binary, Callable[..., Any]]] = (
    (ops.Eq(), lambda a, b: (a - b) == 0),
    (ops.Ne(), lambda a, b: (a - b) != 0),
    (ops.Lt(), lambda a, b: (a - b) < 0),
    (ops.Gt(), lambda a, b: (a - b) > 0),
    (ops.Le(), lambda a, b: (a - b) <= 0),
    (ops.Ge(), lambda a, b: (a - b) >= 0),
)
_FACTS = (
    ("B,3,S,f32", "B,3,S,f32"),
    ("B,1,S,f32", "1,4,1,f32"),
    ("B,S,f16", "B,1,f16"),
    ("S,bf16", "1,bf16"),
    ("B,S,f64", "1,1,f64"),
    ("B,S,i64", "1,S,i64"),
    ("S,i8", "S,i8"),
    ("f32", "f32"),
)
_INFINITY, _NAN = float("inf"), float("nan")

_ENDS = [0.0, -0.0, 1.0, -1.0, _INFINITY, -_INFINITY, _NAN]


def _extreme(op: ops.Min | ops.Max, kind: str, number: float | None = None) -> Case:
    """Zeros, infinities and what is no number, with each other or with a number that is part of the model.

    As IEEE 754-2019 says of maximum and minimum: -0.0 is below 0.0.
    """

    def order(x: float) -> tuple[float, float]:
        return x, np.copysign(1, x)

    def expected(a: Array, b: Array) -> Array:
        pairs = [(float(x), float(y)) for x, y in np.broadcast(a, b)]
        choose = max if isinstance(op, ops.Max) else min
        return np.array([_NAN if np.isnan(pair).any() else choose(pair, key=order) for pair in pairs])

    count = len(_ENDS)
    a = Arg(f"{count * count},{kind}", np.repeat(_ENDS, count))
    b = Arg(f"1,{kind}", [number], constant=True) if number is not None else Arg(a.fact, np.tile(_ENDS, count))
    against = "each other" if number is None else str(number)
    return Case(f"{op.name}-{kind}-ends and {against}", op, [a, b], expected, signed_zeros=True)


_CASES = [
    *(_case(op, expected, *facts) for op, expected in _ARITHMETIC for facts in _FACTS),
    *(_case(op, expected, *facts) for op, expected in _COMPARISONS for facts in _FACTS),
    _case(ops.Mul(), lambda a, b: a * b, "S,complex_f32", "S,complex_f32"),
    _case(ops.Add(), lambda a, b: a + b, "S,complex_f64", "S,complex_f64"),
    _case(ops.Div(), lambda a, b: a / b, "B,S,f32", "B,1,f32", low=0.5),
    _case(ops.Div(), lambda a, b: a / b, "B,S,f16", "1,S,f16", low=0.5),
    _case(ops.Div(), lambda a, b: a / b, "B,S,bf16", "1,S,bf16", low=0.5),
    _case(ops.Pow(), lambda a, b: np.exp(b * np.log(a)), "B,S,f32", "1,S,f32", low=0.1),
    _case(ops.Pow(), lambda a, b: np.exp(b * np.log(a)), "S,f16", "S,f16", low=0.1),
    _case(ops.Rem(), lambda a, b: a - b * np.trunc(a / b), "B,S,f32", "1,S,f32", low=0.5),
    _case(ops.FloorRem(), lambda a, b: a - b * np.floor(a / b), "B,S,f32", "1,S,f32", low=0.5),
    _case(ops.And(), lambda a, b: (a.astype(int) + b) == 2, "B,S,bool", "1,S,bool"),
    _case(ops.Or(), lambda a, b: (a.astype(int) + b) > 0, "B,S,bool", "1,S,bool"),
    _case(ops.Xor(), lambda a, b: (a.astype(int) + b) == 1, "B,S,bool", "1,S,bool"),
    _written(ops.Div(), "i32", [7, -7, 7, -7, 6, 5, -1], [2, 2, -2, -2, -3, 0, 3], [3, -3, -3, 3, -2, 0, 0]),
    _written(ops.Div(), "i64", [2**60 + 1, -(2**60) - 1], [2, 2], [2**59, -(2**59)]),
    _written(ops.Div(), "u8", [255, 200, 5], [2, 201, 0], [127, 0, 0]),
    _written(ops.Div(), "f32", [1, -1, 0], [0, 0, 0], [_INFINITY, -_INFINITY, _NAN]),
    _written(ops.Rem(), "i32", [7, -7, 7, -7, 6, 5], [3, 3, -3, -3, -3, 0], [1, -1, 1, -1, 0, 0]),
    _written(ops.Rem(), "f32", [5.5, -5.5, 5.5, -5.5], [2, 2, -2, -2], [1.5, -1.5, 1.5, -1.5]),
    _written(ops.FloorRem(), "i32", [7, -7, 7, -7, 6, 5], [3, 3, -3, -3, -3, 0], [1, 2, -2, -1, 0, 0]),
    _written(ops.FloorRem(), "f32", [5.5, -5.5, 5.5, -5.5], [2, 2, -2, -2], [1.5, 0.5, -0.5, -1.5]),
    _written(ops.FloorRem(), "f16", [-7], [4], [1.0]),
    _written(ops.Min(), "f32", [1, _NAN, 1, _INFINITY], [2, 1, _NAN, 5], [1, _NAN, _NAN, 5]),
    _written(ops.Max(), "f32", [1, _NAN, 1, -_INFINITY], [2, 1, _NAN, 5], [2, _NAN, _NAN, 5]),
    *(
        _extreme(op, kind, number)
        for op in (ops.Min(), ops.Max())
        for kind in ("f16", "bf16", "f32", "f64")
        for number in (None, 0.0, -0.0, 1.0, _NAN)
    ),
    _written(ops.Pow(), "i64", [2, -3, 5, 0], [10, 3, 0, 0], [1024, -27, 1, 1]),
    _written(ops.Pow(), "i32", [1, -1, -1, 2, -7], [-1, -1, -2, -1, -3], [1, -1, 1, 0, 0]),
    _written(ops.Pow(), "f32", [4, 0, -2, 2], [0.5, 0, 3, -1], [2, 1, -8, 0.5]),
    _written(ops.Add(), "u8", [250, 1], [10, 1], [4, 2], note="-wraps"),
    _written(ops.Sub(), "u8", [1, 5], [2, 1], [255, 4], note="-wraps"),
    _written(ops.Mul(), "i8", [100, -3], [2, 4], [-56, -12], note="-wraps"),
    _written(ops.Add(), "f16", [2048, 1], [1, 2**-11], [2048, 1.0], note="-rounds"),
    _written(ops.ShiftLeft(), "i32", [1, -1, 3], [4, 4, 0], [16, -16, 3]),
    _written(ops.ShiftLeft(), "u8", [255, 1], [1, 7], [254, 128]),
    _written(ops.ShiftRight(), "i32", [16, -16, -1, 7], [4, 2, 1, 1], [1, -4, -1, 3]),
    _written(ops.ShiftRight(), "u8", [255, 1], [1, 1], [127, 0]),
    _written(ops.BitAnd(), "i32", [12, -1], [10, 7], [8, 7]),
    _written(ops.BitOr(), "u8", [12, 240], [10, 15], [14, 255]),
    _written(ops.BitXor(), "i64", [12, -1], [10, 7], [6, -8]),
    _written(ops.Eq(), "string", ["a", "b"], ["a", "c"], [True, False]),
    _written(ops.Ne(), "string", ["a", "b"], ["a", "c"], [False, True]),
    _written(ops.Eq(), "bool", [True, False, True], [True, True, False], [True, False, False]),
    _written(ops.Eq(), "f32", [_NAN, 0, _INFINITY], [_NAN, -0.0, _INFINITY], [False, True, True]),
    _written(ops.Lt(), "f32", [_NAN, 1], [1, _NAN], [False, False]),
    _written(ops.Ge(), "u8", [255, 0], [254, 1], [True, False]),
    _written(ops.Lt(), "i64", [2**60, 2**60 + 1], [2**60 + 1, 2**60], [True, False]),
]

ROWS.add(CASES, "binary", _CASES)
