"""Cases of the operators that add elements before and after axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.ops.pad import DynPad, Pad, PadConstant, PadEdge, PadMode, PadReflect, PadWrap
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


P = symbol("P")


def _value(number: float, kind: Any = np.float32) -> PadConstant:
    return PadConstant(Constant(np.array(number, dtype=kind)))


def _row(mode: PadMode, before: int, after: int, wanted: Sequence[int]) -> Case:
    """The row 1, 2, 3, 4, with the result written down."""
    name = f"Pad-{type(mode).__name__}-{before}-{after}"
    x = Arg("S,f32", [1, 2, 3, 4])
    return Case(name, Pad(((before, after),), mode), [x], lambda _: np.array(wanted, dtype=np.float64), {"S": 4})


def _zeros_around(x: Array) -> Array:
    result = np.zeros((x.shape[0], x.shape[1] + 3, x.shape[2] + 1))
    result[:, 1:-2, 1:] = x
    return result


def _dynamic(pads: Sequence[int], wanted: Sequence[int], mode: PadMode, name: str) -> Case:
    inputs = [Arg("S,f32", [1, 2, 3, 4]), Arg("2,i64", pads)]
    return Case(
        f"DynPad-{name}",
        DynPad(mode, (P,)),
        inputs,
        lambda *_: np.array(wanted, dtype=np.float64),
        {"S": 4, "P": len(wanted)},
    )


_CASES = [
    _row(_value(7), 2, 1, [7, 7, 1, 2, 3, 4, 7]),
    _row(_value(0), 0, 0, [1, 2, 3, 4]),
    _row(PadReflect(), 2, 3, [3, 2, 1, 2, 3, 4, 3, 2, 1]),
    _row(PadReflect(), 5, 0, [2, 3, 4, 3, 2, 1, 2, 3, 4]),
    _row(PadEdge(), 1, 2, [1, 1, 2, 3, 4, 4, 4]),
    _row(PadWrap(), 1, 2, [4, 1, 2, 3, 4, 1, 2]),
    _row(PadWrap(), 5, 0, [4, 1, 2, 3, 4, 1, 2, 3, 4]),
    Case("Pad-two-axes", Pad(((0, 0), (1, 2), (1, 0)), _value(0)), ["B,S,3,f32"], _zeros_around, {"B": 2, "S": 4}),
    Case("Pad-f16", Pad(((0, 0), (1, 2), (1, 0)), _value(0, np.float16)), ["1,S,2,f16"], _zeros_around, {"S": 4}),
    Case(
        "Pad-symbolic",
        Pad(((0, P),), _value(1, np.int64)),
        ["P,i64"],
        lambda x: np.array([*x.tolist(), 1, 1]),
        {"P": 2},
    ),
    Case(
        "Pad-bool",
        Pad(((1, 0),), _value(True, np.bool_)),
        [Arg("2,bool", [False, False])],
        lambda _: np.array([True, False, False]),
    ),
    Case(
        "Pad-corners",
        Pad(((1, 0), (1, 0)), PadReflect()),
        [Arg("2,2,f32", [1, 2, 3, 4])],
        lambda _: np.array([[4.0, 3, 4], [2, 1, 2], [4, 3, 4]]),
    ),
    _dynamic([1, 2], [9, 1, 2, 3, 4, 9, 9], _value(9), "grows"),
    _dynamic([-1, -2], [2], _value(9), "cuts"),
    _dynamic([-1, 2], [2, 3, 4, 9, 9], _value(9), "cuts-and-grows"),
    _dynamic([2, 0], [3, 2, 1, 2, 3, 4], PadReflect(), "reflects"),
    _dynamic([0, 2], [1, 2, 3, 4, 4, 4], PadEdge(), "edge"),
    Case(
        "DynPad-value",
        DynPad(_value(0), (2, P)),
        ["2,S,f32", Arg("4,i32", [0, 1, 0, 0]), Arg("f32", [5])],
        lambda x, *_: np.concatenate([np.full((2, 1), 5.0), x], 1),
        {"S": 3, "P": 4},
    ),
]

ROWS.add(CASES, "pad", _CASES)
