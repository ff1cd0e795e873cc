"""Cases of the operators that write elements to positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tract_core.ops.scatter import Reduction, ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


_SIZES = {"B": 2, "S": 5, "N": 3}

_REDUCTIONS: Sequence[Reduction] = ("none", "add", "mul", "min", "max")
_OF_ZEROS: Sequence[tuple[Reduction, float]] = (("max", 0.0), ("min", -0.0))
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda _, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": min,
    "max": max,
}


def _elements(axis: int, reduction: Reduction) -> Callable[..., Array]:
    """Element by element, in row-major order."""

    def expected(x: Array, indices: Array, updates: Array) -> Array:
        result = x.copy()
        for place in np.ndindex(*indices.shape):
            target = (*place[:axis], int(indices[place]), *place[axis + 1 :])
            result[target] = _COMBINE[reduction](result[target], updates[place])
        return result

    return expected


def _nd(reduction: Reduction) -> Callable[..., Array]:
    """Element by element, in row-major order."""

    def expected(x: Array, indices: Array, updates: Array) -> Array:
        result = x.copy()
        for place in np.ndindex(*indices.shape[:-1]):
            start = tuple(int(i) for i in indices[place])
            for rest in np.ndindex(*x.shape[len(start) :]):
                target = (*start, *rest)
                result[target] = _COMBINE[reduction](result[target], updates[(*place, *rest)])
        return result

    return expected


def _case(op: Any, expected: Callable[..., Array], facts: Sequence[str], size: int) -> Case:
    data, indices, updates = facts
    inputs = [data, Arg(indices, low=-size, high=size - 1), updates]
    return Case(f"{op}-{data}-{indices}", op, inputs, expected, _SIZES)


def _all(axis: int, facts: Sequence[str], size: int) -> list[Case]:
    return [_case(ScatterElements(axis, r), _elements(axis, r), facts, size) for r in _REDUCTIONS]


def _all_nd(facts: Sequence[str], size: int) -> list[Case]:
    return [_case(ScatterNd(r), _nd(r), facts, size) for r in _REDUCTIONS]


_CASES = [
    *_all(1, ["B,S,f32", "B,N,i64", "B,N,f32"], 5),
    *_all(0, ["S,3,f32", "2,2,i32", "2,2,f32"], 5),
    *_all(0, ["4,i64", "6,i64", "6,i64"], 4),
    _case(ScatterElements(1, "add"), _elements(1, "add"), ["B,2,f16", "B,6,i64", "B,6,f16"], 2),
    _case(ScatterElements(0, "max"), _elements(0, "max"), ["S,bf16", "N,i64", "N,bf16"], 5),
    *_all_nd(["S,3,f32", "N,1,i64", "N,3,f32"], 5),
    *_all_nd(["3,3,f32", "B,N,2,i64", "B,N,f32"], 3),
    _case(ScatterNd("add"), _nd("add"), ["2,4,f16", "6,1,i32", "6,4,f16"], 2),
    *(
        Case(
            f"ScatterElements-{reduction}-zeros-{kind}",
            ScatterElements(0, reduction),
            [
                Arg(f"4,{kind}", [0.0, -0.0, 0.0, -0.0]),
                Arg("6,i64", [0, 1, 2, 2, 3, 3]),
                Arg(f"6,{kind}", [-0.0, 0.0, -0.0, 0.0, 0.0, -0.0]),
            ],
            lambda *_, zero=zero: np.full(4, zero),
            signed_zeros=True,
        )
        for reduction, zero in _OF_ZEROS
        for kind in ("f16", "bf16", "f32", "f64")
    ),
    Case(
        "ScatterElements-written-down",
        ScatterElements(1),
        [Arg("1,5,f32", [1, 2, 3, 4, 5]), Arg("1,2,i64", [1, -2]), Arg("1,2,f32", [1.5, 2.5])],
        lambda *_: np.array([[1, 1.5, 3, 2.5, 5]]),
    ),
    Case(
        "ScatterNd-written-down",
        ScatterNd("add"),
        [Arg("4,f32", [1, 2, 3, 4]), Arg("3,1,i64", [1, 1, 3]), Arg("3,f32", [10, 20, 30])],
        lambda *_: np.array([1.0, 32, 3, 34]),
    ),
]

ROWS.add(CASES, "scatter", _CASES)
