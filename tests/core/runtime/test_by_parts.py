"""Operators on elements, computed part after part: to the bit what their meanings give for the whole."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.limits import running
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops import binary, elementwise
from tract_core.ops.cast import Cast
from tract_core.ops.iff import Iff
from tract_core.plugins.keys import Array
from tract_core.runtime import by_parts as module
from tract_core.runtime.by_parts import by_parts
from tract_core.runtime.plan import TypedSimplePlan

SHAPES = [
    (0,),
    (1,),
    (2,),
    (7,),
    (8,),
    (9,),
    (3, 0),
    (0, 3),
    (1, 7),
    (7, 1),
    (3, 7),
    (5, 5),
    (2, 3, 7),
    (1, 1, 17),
    (2, 9, 2),
]
OPS: list[tuple[Any, str]] = [
    *[(op, "f4") for op in (elementwise.Erf(), elementwise.GeluExact(), elementwise.Exp(), elementwise.IsNan())],
    *[(op, "f2") for op in (elementwise.Tanh(), elementwise.Round(), elementwise.Neg(), elementwise.PowConst(0.5))],
    *[(op, "i1") for op in (elementwise.Abs(), elementwise.Sign(), elementwise.Square())],
    *[(op, "f4") for op in (binary.Add(), binary.Pow(), binary.Max(), binary.Lt())],
    *[(op, "i8") for op in (binary.Mul(), binary.ShiftLeft(), binary.Eq())],
    *[(Cast(kind), "f4") for kind in (DatumType.I8, DatumType.F16, DatumType.U64, DatumType.BOOL)],
]


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """Of all sizes, the ends of the type among them; floats with NaN, infinities and zeros of both signs."""
    kind, rng = np.dtype(dtype), np.random.default_rng(seed)
    found: Array
    if kind.kind == "f":
        odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(kind).max, np.finfo(kind).tiny, -1.5, 3.25]
    else:
        odd = [np.iinfo(kind).min, np.iinfo(kind).max, -1, 0, 1, 2, 5]
    found = rng.choice(np.array(odd, kind), prod(shape)).reshape(shape)
    return found


def run(op: Any, arrays: list[Array]) -> Array:
    model = TypedModel()
    inputs = [
        model.add_source(f"x{number}", TypedFact.of(DatumType.from_numpy(array.dtype), array.shape))
        for number, array in enumerate(arrays)
    ]
    model.set_outputs(model.wire_node("y", op, inputs))
    (found,) = TypedSimplePlan(model).run(arrays)
    return found


def inputs_of(op: Any, shape: tuple[int, ...], dtype: str) -> list[list[Array]]:
    """As they are, turned around in memory, and with axes that stretch."""
    x = values(shape, dtype)
    turned = values(shape[::-1], dtype).T
    if not isinstance(op, binary.Binary):
        return [[x], [turned]]
    one = values(tuple(1 if axis % 2 else size for axis, size in enumerate(shape)), dtype, 1)
    other = values(tuple(size if axis % 2 else 1 for axis, size in enumerate(shape)), dtype, 2)
    return [[x, values(shape, dtype, 3)], [turned, one], [one, other], [other, x]]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("op", "dtype"), OPS, ids=lambda one: one if isinstance(one, str) else str(one))
def test_parts_are_the_whole(op: Any, dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for arrays in inputs_of(op, shape, dtype):
        whole = run(op, arrays)
        for most in (1, 2, 7, 8):
            monkeypatch.setattr(module, "MOST", most)
            found = run(op, arrays)
            monkeypatch.undo()
            assert (found.dtype, found.shape) == (whole.dtype, whole.shape)
            assert found.tobytes() == whole.tobytes()


def test_choices_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = np.array([[True], [False], [True]])
    one, other = np.arange(5.0).reshape(1, 5), -np.arange(15.0).reshape(3, 5)
    monkeypatch.setattr(module, "MOST", 4)
    assert run(Iff(), [condition, one, other]).tolist() == np.where(condition, one, other).tolist()


@pytest.mark.parametrize("most", [1, 3, 10, 1000])
@pytest.mark.parametrize("shape", [(4,), (7, 3), (2, 5, 3), (1, 1, 50), (50, 1, 1)], ids=str)
def test_no_part_is_larger_than_it_may_be(shape: tuple[int, ...], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    monkeypatch.setattr(module, "MOST", most)
    by_parts(lambda x: (asked.append(x.size), x + 1)[1], [np.zeros(shape)])
    assert max(asked) <= most
    assert sum(asked) == prod(shape)
    assert len(asked) <= 2 * -(-prod(shape) // most) + 1 or shape[-1] > most // 2


@pytest.mark.parametrize(
    "wrong", [lambda x: x[:, :1], lambda x: x.ravel(), lambda x: x.astype("f8" if x[0, 0] else "f4")]
)
def test_a_meaning_that_is_none_on_elements_is_asked_for_the_whole(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(12.0).reshape(4, 3)
    monkeypatch.setattr(module, "MOST", 3)
    np.testing.assert_array_equal(by_parts(wrong, [x]), wrong(x))


def test_the_time_of_the_run_is_looked_at_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    monkeypatch.setattr(module, "MOST", 1)

    def compute(x: Array) -> Array:
        asked.append(x.size)
        monkeypatch.setattr("tract_core.limits.monotonic", lambda: float("inf"))
        return x

    with running(1 << 20, 600.0), pytest.raises(RunError, match="the run takes longer than 600 seconds"):
        by_parts(compute, [np.zeros(3)])
    assert asked == [1]
