"""Cases of the operators that pick elements by their positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

Array = np.ndarray[Any, Any]


_SIZES = {"B": 2, "S": 5, "N": 3}


def _gather(axis: int) -> Callable[..., Array]:
    """Element by element: the index replaces the coordinate on the axis."""

    def expected(x: Array, indices: Array) -> Array:
        result = np.empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), dtype=x.dtype)
        for before in np.ndindex(*x.shape[:axis]):
            for place in np.ndindex(*indices.shape):
                for after in np.ndindex(*x.shape[axis + 1 :]):
                    result[(*before, *place, *after)] = x[(*before, int(indices[place]), *after)]
        return result

    return expected


def _elements(axis: int) -> Callable[..., Array]:
    """Element by element: the index replaces the coordinate on the axis."""

    def expected(x: Array, indices: Array) -> Array:
        result = np.empty(indices.shape, dtype=x.dtype)
        for place in np.ndindex(*indices.shape):
            result[place] = x[(*place[:axis], int(indices[place]), *place[axis + 1 :])]
        return result

    return expected


def _nd(batch_dims: int) -> Callable[..., Array]:
    """Place by place: the batch's own coordinates, then those in the last axis of the indices."""

    def expected(x: Array, indices: Array) -> Array:
        depth = indices.shape[-1]
        result = np.empty((*indices.shape[:-1], *x.shape[batch_dims + depth :]), dtype=x.dtype)
        for place in np.ndindex(*indices.shape[:-1]):
            result[place] = x[(*place[:batch_dims], *(int(i) for i in indices[place]))]
        return result

    return expected


def _indices(fact: str, size: int, values: Any = None) -> Arg:
    return Arg(fact, values, low=-size, high=size - 1)


def _case(op: Any, expected: Callable[..., Array], fact: str, indices: Arg, note: str = "") -> Case:
    return Case(f"{op}-{fact}-{indices.fact}{note}", op, [fact, indices], expected, _SIZES)


_CASES = [
    _case(Gather(0), _gather(0), "S,4,f32", _indices("N,i64", 5)),
    _case(Gather(1), _gather(1), "B,S,3,f32", _indices("2,N,i64", 5)),
    _case(Gather(2), _gather(2), "B,2,S,f16", _indices("N,i32", 5)),
    _case(Gather(0), _gather(0), "S,f32", _indices("i64", 5)),
    _case(Gather(1), _gather(1), "B,S,3,bf16", _indices("i64", 5, [-1]), "-last"),
    _case(Gather(0), _gather(0), "S,2,i64", _indices("0,i64", 5), "-nothing"),
    _case(Gather(0), _gather(0), "4,bool", _indices("N,u8", 4)),
    Case(
        "Gather-written-down",
        Gather(0),
        [Arg("3,f32", [10, 20, 30]), Arg("4,i64", [2, 0, -1, -3])],
        lambda *_: np.array([30.0, 10, 30, 10]),
    ),
    Case(
        "Gather-strings",
        Gather(0),
        [Arg("2,string", ["a", "b"]), Arg("3,i64", [1, 1, 0])],
        lambda *_: np.array(["b", "b", "a"], dtype=object),
    ),
    Case(
        "Gather-constant-table",
        Gather(0),
        [Arg("3,2,f32", [1, 2, 3, 4, 5, 6], constant=True), Arg("N,i64", [2, 0, 2])],
        lambda *_: np.array([[5.0, 6], [1, 2], [5, 6]]),
        _SIZES,
    ),
    _case(GatherElements(0), _elements(0), "S,3,f32", _indices("N,3,i64", 5)),
    _case(GatherElements(1), _elements(1), "B,S,f16", _indices("B,N,i32", 5)),
    _case(GatherElements(1), _elements(1), "4,S,f32", _indices("2,N,i64", 5), "-smaller"),
    _case(GatherElements(2), _elements(2), "B,2,S,i64", _indices("B,2,1,i64", 5)),
    Case(
        "GatherElements-written-down",
        GatherElements(1),
        [Arg("2,2,f32", [1, 2, 3, 4]), Arg("2,2,i64", [0, 0, 1, -2])],
        lambda *_: np.array([[1.0, 1], [4, 3]]),
    ),
    _case(GatherNd(0), _nd(0), "B,3,f32", _indices("N,1,i64", 2)),
    _case(GatherNd(0), _nd(0), "3,3,2,f32", _indices("N,2,i64", 3)),
    _case(GatherNd(0), _nd(0), "3,3,f16", _indices("B,N,2,i64", 3)),
    _case(GatherNd(1), _nd(1), "B,3,4,f32", _indices("B,1,i64", 3)),
    _case(GatherNd(1), _nd(1), "B,3,3,f32", _indices("B,N,2,i64", 3)),
    _case(GatherNd(2), _nd(2), "B,S,3,i64", _indices("B,S,1,i64", 3)),
    _case(GatherNd(1), _nd(1), "B,3,2,f32", _indices("B,N,1,i32", 3)),
]

ROWS.add(CASES, "gather", _CASES)
