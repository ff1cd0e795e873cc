"""Products whose matrix each row chooses: what is refused, what it costs, and how its axes go on."""

from __future__ import annotations

import numpy as np
import pytest

from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.indexed_matmul import IndexedMatMul, axes, cost, reference

WANTED = "wants rows of one axis more than the indices, and weights of three axes"


@pytest.mark.parametrize(
    ("x", "weights", "which", "said"),
    [
        ("S,4,f32", "3,5,4,f32", "S,f32", "wants integers as indices"),
        ("S,4,i32", "3,5,4,i32", "S,i64", "wants floating-point numbers"),
        ("S,4,f32", "3,5,4,f16", "S,i64", "wants inputs of one element type"),
        ("S,4,f32", "5,4,f32", "S,i64", WANTED),
        ("S,4,f32", "3,5,4,f32", "S,2,i64", WANTED),
        ("S,4,f32", "3,5,6,f32", "S,i64", "rows of S,4,f32 do not fit matrices of 3,5,6,f32"),
        ("2,4,f32", "3,5,4,f32", "3,i64", "axis 0 of 2,4,f32 does not fit the indices 3,i64"),
    ],
)
def test_what_does_not_fit_is_refused(x: str, weights: str, which: str, said: str) -> None:
    with pytest.raises(FactError, match=said):
        IndexedMatMul().output_facts([parse_typed_fact(one) for one in (x, weights, which)])


def test_an_index_that_is_known_to_be_outside_is_refused() -> None:
    model = TypedModel()
    given = [model.add_const("x", np.ones((2, 4), "f4")), model.add_const("w", np.ones((3, 5, 4), "f4"))]
    for index in (3, -4):
        which = model.add_const(f"i{index}", np.array([0, index]))
        with pytest.raises(FactError, match=f"index {index} is outside an axis of size 3"):
            model.wire_node("y", IndexedMatMul(), [*given, which])
        with pytest.raises(RunError, match=f"index {index} is outside axis 0, which has size 3"):
            reference(IndexedMatMul(), np.ones((2, 4), "f4"), np.ones((3, 5, 4), "f4"), np.array([0, index]))


def test_narrow_floats_are_summed_in_f32_and_rounded_once() -> None:
    x, weights = np.full((1, 4096), 1, "f2"), np.full((1, 1, 4096), 1.001, "f2")
    found = reference(IndexedMatMul(), x, weights, np.zeros(1, "i8"))
    assert found.dtype == np.float16
    assert found[0, 0] == np.float16(4096 * float(weights[0, 0, 0]))


def test_axes_and_cost() -> None:
    inputs = [parse_typed_fact(one) for one in ("B,S,1,4,f32", "3,5,4,f32", "B,S,2,i64")]
    (output,) = IndexedMatMul().output_facts(inputs)
    assert str(output) == "B,S,2,5,f32"
    (x, weights, which), (result,) = (
        axes(IndexedMatMul(), inputs, [output]).inputs,
        axes(IndexedMatMul(), inputs, [output]).outputs,
    )
    assert x[:2] == which[:2] == result[:2]
    assert x[2] not in result
    assert (x[3], result[2:]) == (weights[2], which[2] + weights[1])
    assert str(cost(IndexedMatMul(), inputs, [output])["FMA(F32)"]) == "40*B*S"
