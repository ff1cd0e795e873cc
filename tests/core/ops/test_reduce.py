from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops import reduce
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.runtime.lookup import find_runtime
from tract_core.runtime.plan import TypedSimplePlan


@pytest.mark.parametrize(
    ("op", "fact", "message"),
    [
        (Reduce((2,), Reducer.SUM), "2,3,f32", "Reduce: axis 2 is outside a tensor of rank 2"),
        (Reduce((1, 1), Reducer.SUM), "2,3,f32", r"axes \[1, 1\] name one axis twice"),
        (
            Reduce((0, 1), Reducer.ARG_MAX_FIRST),
            "2,3,f32",
            r"Reduce arg_max_first looks along one axis, found axes \[0, 1\]",
        ),
        (Reduce((0,), Reducer.ALL), "2,f32", "Reduce all does not take f32: 2,f32"),
        (Reduce((0,), Reducer.SUM), "2,bool", "Reduce sum does not take bool"),
        (Reduce((0,), Reducer.MAX), "2,complex_f32", "Reduce max does not take complex_f32"),
        (Reduce((0,), Reducer.MEAN_OF_SQUARES), "2,i32", "Reduce mean_of_squares does not take i32"),
    ],
)
def test_refusals_say_what_was_found(op: Reduce, fact: str, message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact)])


def test_facts_axes_and_cost() -> None:
    op, x = Reduce((1,), Reducer.SUM), parse_typed_fact("B,S,3,f32")
    (output,) = op.output_facts([x])
    assert str(output) == "B,1,3,f32"
    mapping = reduce.axes(op, [x], [output])
    assert [mapping.track(("in", 0, axis), ("out", 0)) for axis in range(3)] == [0, None, 2]
    assert str(reduce.cost(op, [x], [output])["FMA(F32)"]) == "3*B*S"


def test_sizes_are_reduced_while_they_are_wired() -> None:
    model = TypedModel()
    shape = model.symbols.parse("B"), model.symbols.parse("S"), 4
    sizes = model.add_const("sizes", shape)
    wanted = {Reducer.PROD: "4*B*S", Reducer.SUM: "B+S+4", Reducer.MAX: "max(B,S,4)", Reducer.MIN: "min(B,S,4)"}
    for reducer, text in wanted.items():
        (outlet,) = model.wire_node(reducer.value, Reduce((0,), reducer), [sizes])
        dims = model.outlet_fact(outlet).dims
        assert dims is not None
        assert model.symbols.same(dims[0], model.symbols.parse(text)), (reducer, dims)


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_mean_of_a_symbolic_number_of_elements(kind: str) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"B,S,3,{kind}", model.symbols))
    model.set_outputs([wire_mean(model, "mean", x, [1, 2])])
    array = np.random.default_rng(2).uniform(100, 200, (2, 700, 3)).astype(kind.replace("f", "float"))
    (found,) = TypedSimplePlan(model).run([array])
    assert found.dtype == array.dtype
    np.testing.assert_allclose(found, array.astype(np.float64).mean(axis=(1, 2), keepdims=True), rtol=1e-3)
    assert model.has_node("mean") or kind == "f16"


WHOLE = {f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)}


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("kind", WHOLE)
def test_no_sum_of_a_mean_of_integers_leaves_the_type(kind: str, runtime: str) -> None:
    """Cut off at the point, of numbers up to the ends of the type."""
    limits, random = np.iinfo(WHOLE[kind]), np.random.default_rng(3)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"N,S,{kind}", model.symbols))
    model.set_outputs([wire_mean(model, "mean", x, [1])])
    state = find_runtime(runtime).prepare(model.declutter()).spawn()
    for size in (0, 1, 2, 3, 64):
        ends = random.choice(
            np.array([limits.min, limits.min + 1, limits.max, limits.max - 1], WHOLE[kind]), (40, size)
        )
        small = random.integers(max(limits.min, -5), 6, (40, size)).astype(WHOLE[kind])
        x = np.where(random.random((40, size)) < 0.5, ends, small)
        wanted = [math.trunc(Fraction(sum(row), size)) if size else 0 for row in x.tolist()]
        assert state.run([x])[0].reshape(-1).tolist() == wanted


def test_a_mean_of_integers_agrees_with_onnx_runtime(run_onnx: Callable[..., Any]) -> None:
    x = np.array([[2**31 - 1, 2**31 - 1, 0], [-(2**31), -(2**31), -7], [-7, 0, 0]], np.int32)
    model = TypedModel()
    source = model.add_source("x", parse_typed_fact("3,3,i32"))
    model.set_outputs([wire_mean(model, "mean", source, [1])])
    np.testing.assert_array_equal(TypedSimplePlan(model).run([x])[0], run_onnx("ReduceMean", [x], axes=[1])[0])


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("kind", ["Max", "Min"])
def test_positions_agree_with_onnx(
    run_op: Callable[..., Any], run_onnx: Callable[..., Any], kind: str, last: int
) -> None:
    x = np.random.default_rng(5).integers(0, 4, (3, 20)).astype(np.float32)
    reducer = Reducer[f"ARG_{kind.upper()}_{'LAST' if last else 'FIRST'}"]
    wanted = run_onnx(f"Arg{kind}", [x], axis=1, select_last_index=last)[0]
    np.testing.assert_array_equal(run_op(Reduce((1,), reducer), [x])[0], wanted)
