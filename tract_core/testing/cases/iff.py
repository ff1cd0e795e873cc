"""Cases of the operators that choose between two tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _expected(condition: Array, a: Array, b: Array) -> Array:
    """Element by element, after each input was brought to the common shape."""
    condition, a, b = np.broadcast_arrays(condition, a, b)
    result = np.empty(a.shape, dtype=a.dtype)
    for place in np.ndindex(*a.shape):
        result[place] = a[place] if condition[place] else b[place]
    return result


def _case(*facts: str) -> Case:
    return Case(f"Iff-{'-'.join(facts)}", Iff(), facts, _expected, {"B": 2, "S": 3})


_CASES = [
    _case("B,S,bool", "B,S,f32", "B,S,f32"),
    _case("B,1,bool", "1,S,f16", "B,S,f16"),
    _case("1,S,bool", "B,1,i64", "1,1,i64"),
    _case("bool", "f32", "f32"),
    _case("S,bool", "S,bool", "S,bool"),
    Case(
        "Iff-strings",
        Iff(),
        [Arg("2,bool", [True, False]), Arg("2,string", ["a", "b"]), Arg("2,string", ["c", "d"])],
        lambda *_: np.array(["a", "d"], dtype=object),
    ),
    Case(
        "Iff-not-a-number-on-the-other-side",
        Iff(),
        [Arg("2,bool", [True, False]), Arg("2,f32", [1, float("nan")]), Arg("2,f32", [float("inf"), 2])],
        lambda *_: np.array([1.0, 2]),
    ),
]

ROWS.add(CASES, "iff", _CASES)
