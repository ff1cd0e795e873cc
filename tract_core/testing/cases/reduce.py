"""Cases of reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tract_core.ops.reduce import Reduce, Reducer
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SIZES = {"B": 2, "S": 5}


def _along(axes: tuple[int, ...], function: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    """``function`` of the list of elements that lie along the axes."""

    def expected(x: Any) -> Any:
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        rows = x.transpose([*kept, *axes]).reshape([*(x.shape[axis] for axis in kept), -1])
        found = np.array([function(row.tolist()) for row in rows.reshape(-1, rows.shape[-1])])
        return found.reshape([1 if axis in axes else size for axis, size in enumerate(x.shape)])

    return expected


def _product(row: list[Any]) -> Any:
    result = 1
    for element in row:
        result = result * element
    return result


def _case(reducer: Reducer, axes: tuple[int, ...], arg: str | Arg, function: Callable[[list[Any]], Any]) -> Case:
    fact = arg if isinstance(arg, str) else arg.fact
    return Case(f"Reduce-{reducer.value}-{axes}-{fact}", Reduce(axes, reducer), [arg], _along(axes, function), _SIZES)


def _last_of(best: Callable[[list[Any]], Any]) -> Callable[[list[Any]], int]:
    return lambda row: len(row) - 1 - row[::-1].index(best(row))


_ZEROS = [[-0.0] * 37, [-0.0] * 36 + [0.0], [0.0] + [-0.0] * 36, [-1.0, -0.0] + [-2.0] * 35, [1.0, -0.0] + [0.0] * 35]
"""Extremes that are zero; the last two are one among the largest or smallest only."""


def _zeros(reducer: Reducer, kind: str, *, turned: bool, sign: float) -> Case:
    """Rows of zeros, one element after the other or with the elements of other rows between; with the other sign."""
    rows = sign * np.array(_ZEROS)
    values, axis = (rows.T, 0) if turned else (rows, 1)
    best = max if reducer is Reducer.MAX else min

    def expected(x: Any) -> Any:
        found = [best(row.tolist(), key=lambda one: (one, np.copysign(1, one))) for row in rows]
        return np.expand_dims(np.array(found), axis)

    fact = f"{values.shape[0]},{values.shape[1]},{kind}"
    name = f"Reduce-{reducer.value}-zeros-{axis}-{sign}-{kind}"
    return Case(name, Reduce((axis,), reducer), [Arg(fact, values)], expected, signed_zeros=True)


_TIES = Arg("B,S,f32", [3, 1, 3, 1, 2, 0, 0, -1, 0, -1])

_CASES = [
    _case(Reducer.SUM, (1,), "B,3,S,f32", sum),
    _case(Reducer.SUM, (0, 2), "B,3,S,f32", sum),
    _case(Reducer.SUM, (), "B,S,f32", sum),
    _case(Reducer.SUM, (1,), "B,S,f16", sum),
    _case(Reducer.SUM, (1,), "B,S,bf16", sum),
    _case(Reducer.SUM, (0,), "B,S,i64", sum),
    _case(Reducer.SUM, (0,), "B,S,complex_f32", sum),
    _case(Reducer.PROD, (0, 1), "B,S,f32", _product),
    _case(Reducer.PROD, (1,), "B,S,i32", _product),
    _case(Reducer.MIN, (1,), "B,S,f32", min),
    _case(Reducer.MIN, (1,), "B,S,u8", min),
    _case(Reducer.MAX, (2, 0), "B,3,S,f32", max),
    _case(Reducer.MAX, (0,), "B,S,i8", max),
    _case(Reducer.MAX, (1,), "B,S,bool", max),
    _case(Reducer.MAX, (1,), "B,S,f16", max),
    _case(Reducer.ARG_MIN_FIRST, (1,), _TIES, lambda row: row.index(min(row))),
    _case(Reducer.ARG_MIN_LAST, (1,), _TIES, _last_of(min)),
    _case(Reducer.ARG_MAX_FIRST, (1,), _TIES, lambda row: row.index(max(row))),
    _case(Reducer.ARG_MAX_LAST, (1,), _TIES, _last_of(max)),
    _case(Reducer.ARG_MAX_FIRST, (0,), "B,S,i32", lambda row: row.index(max(row))),
    _case(Reducer.MEAN_OF_SQUARES, (1, 2), "B,3,S,f32", lambda row: sum(x * x for x in row) / len(row)),
    _case(Reducer.MEAN_OF_SQUARES, (1,), Arg("B,S,f16", high=300), lambda row: sum(x * x for x in row) / len(row)),
    _case(Reducer.ALL, (1,), "B,S,bool", all),
    _case(Reducer.ANY, (0,), "B,S,bool", any),
    *(
        _zeros(reducer, kind, turned=turned, sign=sign)
        for reducer in (Reducer.MIN, Reducer.MAX)
        for kind in ("f16", "bf16", "f32", "f64")
        for turned in (False, True)
        for sign in (1.0, -1.0)
    ),
    Case("Reduce-sum of nothing", Reduce((1,), Reducer.SUM), ["B,0,f32"], lambda _: np.zeros((2, 1)), _SIZES),
    Case("Reduce-prod of nothing", Reduce((1,), Reducer.PROD), ["B,0,i32"], lambda _: np.ones((2, 1), int), _SIZES),
    Case("Reduce-max of nothing", Reduce((0,), Reducer.MAX), ["0,f32"], lambda _: np.array([-np.inf])),
    Case("Reduce-min of nothing", Reduce((0,), Reducer.MIN), ["0,u8"], lambda _: np.array([255])),
    Case("Reduce-max nan", Reduce((0,), Reducer.MAX), [Arg("3,f32", [1, np.nan, 2])], lambda _: np.array([np.nan])),
]

ROWS.add(CASES, "reduce", _CASES)
