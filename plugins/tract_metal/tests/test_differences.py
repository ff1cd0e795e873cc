"""Where MLX means something else than the core: each would be wrong by MLX's own function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_mlx import model_of, plan_of, run, wanted

from tract_core.data import Constant, DatumType
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Div, FloorRem, Max, Min, Rem, ShiftLeft, ShiftRight
from tract_core.ops.cast import Cast
from tract_core.ops.cumsum import CumMax, CumMin, CumSum
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.one_hot import OneHot
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.topk import Topk

NAN, INF = float("nan"), float("inf")
LEAST = np.iinfo(np.int32).min


def i4(*values: int) -> np.ndarray:
    return np.array(values, "i4")


def f4(*values: float) -> np.ndarray:
    return np.array(values, "f4")


SAME: dict[str, tuple[TypedOp, list[np.ndarray]]] = {
    "the smallest integer by -1": (Div(), [i4(LEAST, 7), i4(-1, -1)]),
    "integers by 0": (Div(), [i4(7, -7, 0), i4(0, 0, 0)]),
    "integers are divided towards 0": (Div(), [i4(7, -7, 7, -7), i4(2, 2, -2, -2)]),
    "remainders have the sign of the dividend": (Rem(), [i4(7, -7, 7, -7), i4(2, 2, -2, -2)]),
    "remainders of floats, too": (Rem(), [f4(7.5, -7.5, 7.5, -7.5), f4(2, 2, -2, -2)]),
    "remainders by infinity": (Rem(), [f4(7.5, -7.5, -0.0), f4(INF, -INF, INF)]),
    "remainders with the sign of the divisor": (FloorRem(), [i4(7, -7, 7, -7), i4(2, 2, -2, -2)]),
    "shifts beyond the width": (ShiftLeft(), [i4(1, 1, 1), i4(31, 32, 40)]),
    "shifts of negative numbers beyond the width": (ShiftRight(), [i4(-5, 5, -5), i4(40, 40, 31)]),
    "the larger one of two zeros": (Max(), [np.repeat(f4(0.0, -0.0), 20), np.tile(f4(0.0, -0.0), 20)]),
    "the smaller one of two zeros": (Min(), [np.repeat(f4(0.0, -0.0), 20), np.tile(f4(0.0, -0.0), 20)]),
    "the largest so far, of zeros": (CumMax(0), [f4(-0.0, 0.0, -0.0, NAN, 1.0)]),
    "the smallest so far, of zeros": (CumMin(0), [f4(0.0, -0.0, 0.0, NAN, -1.0)]),
    "nothing but -0.0 has the sum 0.0": (CumSum(0), [f4(-0.0, -0.0)]),
    "the largest of -0.0 and 0.0": (Reduce((0,), Reducer.MAX), [f4(-0.0, 0.0, -0.0)]),
    "the smallest of 0.0 and -0.0": (Reduce((0,), Reducer.MIN), [f4(0.0, -0.0, 0.0)]),
    "sums of nothing": (Reduce((1,), Reducer.SUM), [np.zeros((2, 0), "f4")]),
    "products of nothing": (Reduce((1,), Reducer.PROD), [np.zeros((2, 0), "f4")]),
    "sums of f16 beyond f16, on the way": (
        Reduce((0,), Reducer.SUM),
        [np.concatenate([np.full(70000, 1, "f2"), np.full(69000, -1, "f2")])],
    ),
    "floats beyond i32": (Cast(DatumType.I32), [f4(3e9, -3e9, NAN, INF, -INF, 2.9, -2.9)]),
    "floats beyond u8": (Cast(DatumType.U8), [f4(300, -1, NAN, 255.9, -0.9)]),
    "floats beyond i64": (Cast(DatumType.I64), [f4(1e30, -1e30, NAN, 9.2233715e18)]),
    "anything but 0 is true": (Cast(DatumType.BOOL), [f4(0.5, -0.0, NAN)]),
    "the last one of several writes": (
        ScatterElements(0),
        [np.zeros(3, "f4"), np.array([1, 1, 1, 0]), f4(1, 2, 3, 4)],
    ),
    "sums of bytes": (
        EinSum(AxesMapping(("mk", "kn"), ("mn",)), DatumType.I32),
        [np.full((2, 5000), -128, "i1"), np.full((5000, 3), -128, "i1")],
    ),
}  # fmt: skip


def fact_of(array: np.ndarray) -> str:
    return ",".join([*map(str, array.shape), DatumType.from_numpy(array.dtype).short])


@pytest.mark.parametrize("name", SAME)
def test_what_is_given_is_what_the_core_says(name: str) -> None:
    op, inputs = SAME[name]
    model = model_of(op, *map(fact_of, inputs))
    (found,), (right,) = run(model, *inputs), wanted(model, inputs)
    assert found.dtype == right.dtype
    np.testing.assert_array_equal(found, right)
    if right.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found[~np.isnan(right)]), np.signbit(right[~np.isnan(right)]))


def test_the_order_of_equals_is_that_of_places() -> None:
    x = np.tile(f4(1, 0, NAN, -0.0), 50)
    model = model_of(Topk(0, True, 120), "200,f32", "i64", constants={1: np.array(120)})
    values, places = run(model, x)
    right = wanted(model, [x])
    np.testing.assert_array_equal(values, right[0])
    np.testing.assert_array_equal(places, right[1])


OUTSIDE: list[tuple[TypedOp, list[Any]]] = [
    (Gather(0), [f4(0, 1, 2, 3), np.array([1, 7])]),
    (Gather(0), [f4(0, 1, 2, 3), np.array([-5])]),
    (GatherElements(0), [f4(0, 1, 2, 3), np.array([4])]),
    (GatherNd(0), [f4(0, 1, 2, 3), np.array([[4]])]),
    (ScatterElements(0), [f4(0, 1), np.array([2]), f4(5)]),
]


@pytest.mark.parametrize(("op", "inputs"), OUTSIDE, ids=lambda one: type(one).__name__)
def test_an_index_outside_is_named_and_the_next_turn_is_right(op: TypedOp, inputs: list[Any]) -> None:
    model = model_of(op, *map(fact_of, inputs))
    state = plan_of(model).spawn()
    with pytest.raises(RunError, match="is outside axis 0, which has size"):
        state.run(inputs)
    inside = [inputs[0], np.zeros_like(inputs[1]), *inputs[2:]]
    (found,), (right,) = state.run(inside), wanted(model, inside)
    np.testing.assert_array_equal(found, right)


MINUS_ZERO = np.array(-0.0, "f4")


def padded() -> TypedModel:
    return model_of(Pad(((1, 1),), PadConstant(Constant(MINUS_ZERO))), "20,f32")


def one_hot() -> TypedModel:
    return model_of(OneHot(1, 3, Constant(MINUS_ZERO), Constant(MINUS_ZERO)), "20,i64")


def smallest() -> TypedModel:
    return model_of(Min(), "20,f16", "1,f16", constants={1: np.array([-0.0], "f2")})


def smallest_in_a_body() -> TypedModel:
    body = model_of(Min(), "20,f32", "1,f32", constants={1: MINUS_ZERO.reshape(1)})
    return model_of(SubmodelOp(body), "20,f32")


@pytest.mark.parametrize("make", [padded, one_hot, smallest, smallest_in_a_body], ids=lambda make: make.__name__)
def test_minus_zero_as_part_of_a_model_keeps_its_sign(make) -> None:
    """MLX writes arrays of one element into its kernels, as texts."""
    model = make()
    zeros = np.zeros(20, model.outlet_fact(model.inputs[0]).datum_type.storage.numpy)
    (found,), (right,) = run(model, zeros), wanted(model, [zeros])
    np.testing.assert_array_equal(np.signbit(found), np.signbit(right))
    assert np.signbit(right).any()
