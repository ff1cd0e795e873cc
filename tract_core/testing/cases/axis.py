"""Cases of the operators that arrange elements in axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


B, S = symbol("B"), symbol("S")
_SIZES = {"B": 2, "S": 3}


def _same_elements(*shape: int) -> Callable[[Array], Array]:
    """The elements in row-major order, in a shape that is written down."""

    def expected(x: Array) -> Array:
        result = np.empty(shape, dtype=x.dtype)
        result.flat[:] = list(x.flat)
        return result

    return expected


def _moved(source: int, target: int) -> Callable[[Array], Array]:
    """Element by element: the coordinate taken out at ``source`` and put in at ``target``."""

    def expected(x: Array) -> Array:
        elements: dict[tuple[int, ...], Any] = {}
        for place in np.ndindex(*x.shape):
            moved = list(place)
            moved.insert(target, moved.pop(source))
            elements[tuple(moved)] = x[place]
        result = np.empty([max(axis) + 1 for axis in zip(*elements, strict=True)], dtype=x.dtype)
        for place, element in elements.items():
            result[place] = element
        return result

    return expected


def _case(op: Any, fact: str, expected: Callable[[Array], Array]) -> Case:
    return Case(f"{op}-{fact}", op, [fact], expected, _SIZES)


_CASES = [
    _case(AddAxis(0), "B,S,f32", _same_elements(1, 2, 3)),
    _case(AddAxis(1), "B,S,f16", _same_elements(2, 1, 3)),
    _case(AddAxis(2), "B,S,i64", _same_elements(2, 3, 1)),
    _case(AddAxis(0), "bf16", _same_elements(1)),
    _case(RmAxis(0), "1,S,f32", _same_elements(3)),
    _case(RmAxis(1), "B,1,S,bool", _same_elements(2, 3)),
    _case(RmAxis(0), "1,i8", _same_elements()),
    *(_case(MoveAxis(a, b), "B,S,4,f32", _moved(a, b)) for a in range(3) for b in range(3)),
    _case(MoveAxis(0, 3), "B,S,4,5,i32", _moved(0, 3)),
    _case(MoveAxis(2, 1), "1,S,4,complex_f32", _moved(2, 1)),
    _case(Reshape(0, (B, S), (B * S,)), "B,S,f32", _same_elements(6)),
    _case(Reshape(1, (6,), (2, 3)), "B,6,f32", _same_elements(2, 2, 3)),
    _case(Reshape(1, (S, 4), (2 * S, 2)), "B,S,4,f32", _same_elements(2, 6, 2)),
    _case(Reshape(0, (B, S, 4), (4, B, S)), "B,S,4,i64", _same_elements(4, 2, 3)),
    _case(Reshape(0, (1,), ()), "1,S,f32", _same_elements(3)),
    _case(Reshape(1, (), (1, 1)), "B,S,f32", _same_elements(2, 1, 1, 3)),
    _case(Reshape(0, (0, S), (S, 0)), "0,S,f32", _same_elements(3, 0)),
    Case(
        "Reshape-strings",
        Reshape(0, (4,), (2, 2)),
        [Arg("4,string", ["a", "b", "c", "d"])],
        lambda _: np.array([["a", "b"], ["c", "d"]], dtype=object),
    ),
]

ROWS.add(CASES, "axis", _CASES)
