"""Cases of the operators that put tensors one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tract_core.ops.concat import TypedConcat
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _expected(axis: int) -> Callable[..., Array]:
    """Each input copied to its own range of an empty result."""

    def expected(*inputs: Array) -> Array:
        shape = list(inputs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in inputs)
        result = np.empty(shape, dtype=inputs[0].dtype)
        offset = 0
        for x in inputs:
            result[(slice(None),) * axis + (slice(offset, offset + x.shape[axis]),)] = x
            offset += x.shape[axis]
        return result

    return expected


def _case(axis: int, *facts: str) -> Case:
    name = f"TypedConcat-{axis}-{'-'.join(facts)}"
    return Case(name, TypedConcat(axis), facts, _expected(axis), {"B": 2, "S": 3})


_CASES = [
    _case(0, "B,3,f32", "S,3,f32"),
    _case(1, "B,S,4,f32", "B,2,4,f32", "B,S,4,f32"),
    _case(2, "2,S,1,f16", "2,S,4,f16"),
    _case(0, "S,bf16", "1,bf16"),
    _case(0, "S,i64", "B,i64"),
    _case(0, "S,u8", "B,u8"),
    _case(0, "S,bool", "B,bool"),
    _case(0, "S,complex_f32", "1,complex_f32"),
    _case(1, "2,0,f32", "2,S,f32"),
    _case(0, "B,S,f32"),
    Case(
        "TypedConcat-strings",
        TypedConcat(0),
        [Arg("2,string", ["a", "b"]), Arg("1,string", ["c"])],
        lambda *_: np.array(["a", "b", "c"], dtype=object),
    ),
    Case(
        "TypedConcat-constant",
        TypedConcat(0),
        ["S,f32", Arg("2,f32", [7, 8], constant=True)],
        lambda x, _: np.array([*x.tolist(), 7, 8]),
        {"S": 3},
    ),
]

ROWS.add(CASES, "concat", _CASES)
