from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Div, Mul
from tract_core.ops.elementwise import Exp, Floor, Recip, Rsqrt, Sqrt, Square
from tract_core.ops.norm import wire_standardize
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.wiring import wire_binary, wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


def _number(model: TypedModel, value: Any) -> OutletId:
    return model.add_const("number", np.array(value, np.float32))


def test_reducing_axes_of_size_one_is_nothing() -> None:
    model, (x,) = sources("B,1,f32")
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([wire_one(model, "out", Reduce((1,), Reducer.MAX), y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp"]


@pytest.mark.parametrize(("reducer", "count"), [(Reducer.SUM, 1), (Reducer.MEAN_OF_SQUARES, 2)])
def test_reductions_of_one_kind_are_merged(reducer: Reducer, count: int) -> None:
    model, (x,) = sources("B,3,4,f32")
    y = wire_one(model, "a", Reduce((2,), reducer), x)
    model.set_outputs([wire_one(model, "out", Reduce((1,), reducer), y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Reduce"] * count


def test_sums_in_half_precision_are_rounded_one_after_the_other() -> None:
    model, (x,) = sources("B,3,4,f16")
    y = wire_one(model, "a", Reduce((2,), Reducer.SUM), x)
    model.set_outputs([wire_one(model, "out", Reduce((1,), Reducer.SUM), y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Reduce", "Reduce"]


@pytest.mark.parametrize("value", [3.4e38, np.inf, np.nan], ids=str)
def test_a_factor_does_not_wait_for_the_sum(value: float) -> None:
    model, (x,) = sources("4,f32")
    products = [wire_binary(model, f"p{factor}", Mul(), x, _number(model, factor)) for factor in (0, 0.25, 2)]
    model.set_outputs([wire_one(model, f"sum{n}", Reduce((0,), Reducer.SUM), p) for n, p in enumerate(products)])
    checked_declutter(model, inputs=[np.full(4, value, np.float32)])


@pytest.mark.parametrize(
    ("fact", "op", "number", "found"),
    [
        ("B,3,4,f32", Div(), 12, True),
        ("B,2,4,f32", Mul(), 1 / 8, True),
        ("B,3,4,f32", Mul(), 1 / 12, False),  # which is rounded
        ("B,3,4,f32", Div(), 11, False),
        ("B,3,4,f16", Div(), 12, False),  # as the sum is rounded
    ],
)
def test_the_mean_of_squares(fact: str, op: Mul | Div, number: float, found: bool) -> None:
    model, (x,) = sources(fact)
    kind = model.outlet_fact(x).datum_type.numpy
    total = wire_one(model, "sum", Reduce((1, 2), Reducer.SUM), wire_one(model, "square", Square(), x))
    model.set_outputs([wire_binary(model, "out", op, total, model.add_const("n", np.array(number, kind)))])
    simple = checked_declutter(model, {"B": 2})
    assert (operators(simple) == ["Reduce"]) == found


def test_the_mean_of_products_as_a_frontend_wires_it() -> None:
    model, (x,) = sources("B,S,8,f32")
    model.set_outputs([wire_mean(model, "out", wire_one(model, "square", Mul(), x, x), [2])])
    simple = checked_declutter(model, {"B": 2, "S": 3})
    assert operators(simple) == ["Reduce"]
    assert simple.node_by_name("out").op == Reduce((2,), Reducer.MEAN_OF_SQUARES)


def _rms(model: TypedModel, x: OutletId, form: str) -> OutletId:
    mean = wire_one(model, "mean", Reduce((2,), Reducer.MEAN_OF_SQUARES), x)
    plus = wire_binary(model, "plus", Add(), _number(model, 1e-3), mean)
    if form == "rsqrt":
        return wire_one(model, "out", Mul(), wire_one(model, "root", Rsqrt(), plus), x)
    root = wire_one(model, "root", Sqrt(), plus)
    if form == "div":
        return wire_one(model, "out", Div(), x, root)
    return wire_one(model, "out", Mul(), x, wire_one(model, "recip", Recip(), root))


@pytest.mark.parametrize("form", ["rsqrt", "div", "recip"])
def test_rms_norm(form: str) -> None:
    model, (x,) = sources("B,S,8,f32")
    model.set_outputs([_rms(model, x, form)])
    assert operators(checked_declutter(model, {"B": 2, "S": 3})) == ["RmsNorm"]


def test_a_product_with_a_reciprocal_root_stays_where_a_jump_would_show_its_rounding() -> None:
    model, (x,) = sources("B,S,8,f32")
    model.set_outputs([wire_one(model, "floor", Floor(), _rms(model, x, "rsqrt"))])
    assert "RmsNorm" not in operators(checked_declutter(model, {"B": 2, "S": 3}))


def test_in_half_precision_a_norm_stays_spelled_out() -> None:
    model, (x,) = sources("B,8,f16")
    mean = wire_one(model, "mean", Reduce((1,), Reducer.MEAN_OF_SQUARES), x)
    model.set_outputs([wire_one(model, "out", Mul(), x, wire_one(model, "root", Rsqrt(), mean))])
    plain = np.full((1, 8), 300, np.float16)
    checked_declutter(model, inputs=[plain])


def test_a_norm_of_something_else_is_none() -> None:
    model, (x, y) = sources("B,S,8,f32", "B,S,8,f32")
    mean = wire_one(model, "mean", Reduce((2,), Reducer.MEAN_OF_SQUARES), y)
    root = wire_one(model, "root", Rsqrt(), wire_binary(model, "plus", Add(), mean, _number(model, 1e-3)))
    model.set_outputs([wire_one(model, "out", Mul(), x, root)])
    assert "RmsNorm" not in operators(checked_declutter(model, {"B": 2, "S": 3}))


def test_layer_norm_is_a_difference_and_an_rms_norm() -> None:
    model, (x,) = sources("B,S,8,f32")
    model.set_outputs([wire_standardize(model, "out", x, [2], 1e-5)])
    found = operators(checked_declutter(model, {"B": 2, "S": 3}))
    assert sorted(found) == ["Mul", "Reduce", "RmsNorm", "Sub"]


def test_a_mean_that_is_stretched_stays() -> None:
    model, (x,) = sources("2,4,f32")
    total = wire_one(model, "sum", Reduce((1,), Reducer.SUM), wire_one(model, "square", Square(), x))
    model.set_outputs([wire_one(model, "out", Mul(), total, _number(model, [[0.25] * 3]))])
    checked_declutter(model)


def test_a_norm_that_is_stretched_stays() -> None:
    model, (x,) = sources("2,1,f32")
    mean = wire_one(model, "mean", Reduce((1,), Reducer.MEAN_OF_SQUARES), x)
    root = wire_one(model, "root", Rsqrt(), wire_one(model, "plus", Add(), mean, _number(model, [[1e-3] * 3])))
    model.set_outputs([wire_one(model, "out", Mul(), x, root)])
    checked_declutter(model)


def test_the_mean_of_nothing_stays_what_it_is() -> None:
    model, (x,) = sources("2,0,f32")
    total = wire_one(model, "sum", Reduce((1,), Reducer.SUM), wire_one(model, "square", Square(), x))
    model.set_outputs([wire_one(model, "out", Mul(), total, _number(model, [[1.0]]))])
    checked_declutter(model)


def test_axes_are_reduced_in_ascending_order() -> None:
    model, (x,) = sources("B,3,4,f32")
    model.set_outputs([wire_one(model, "out", Reduce((2, 0), Reducer.MAX), x)])
    simple = checked_declutter(model, {"B": 2})
    assert simple.node_by_name("out").op == Reduce((0, 2), Reducer.MAX)
