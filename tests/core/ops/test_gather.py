"""What gathering refuses, and how it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError, InputError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Gather(1), ["2,f32", "2,i64"], r"axis 1 is outside a tensor of rank 1"),
        (Gather(0), ["2,f32", "2,f32"], r"wants integers as indices, found 2,f32"),
        (GatherElements(0), ["2,2,f32", "2,i64"], r"wants inputs of one rank, found 2, 1"),
        (GatherElements(0), ["2,2,f32", "2,3,i64"], r"the indices 2,3,i64 go beyond axis 1 of 2,2,f32"),
        (GatherNd(0), ["2,2,f32", "2,3,i64"], r"GatherNd: indices 2,3,i64 with 0 batch axes do not fit 2,2,f32"),
        (GatherNd(0), ["2,2,f32", "2,S,i64"], r"its size must be a number"),
        (GatherNd(0), ["2,2,f32", "2,0,i64"], r"its size must be a number, 1 or more"),
        (GatherNd(2), ["2,2,f32", "2,2,i64"], r"with 2 batch axes do not fit"),
        (GatherNd(1), ["2,2,f32", "3,1,i64"], r"sizes on axis 0 differ: 2,2,f32 and 3,1,i64"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize("index", [3, -4])
@pytest.mark.parametrize(
    ("op", "shape"), [(Gather(1), (1,)), (GatherElements(1), (1, 1)), (GatherNd(1), (2, 1, 1))], ids=str
)
def test_index_outside_is_refused(
    run_op: Callable[..., list[Array]], op: Any, shape: tuple[int, ...], index: int
) -> None:
    arrays = [np.zeros((2, 3), dtype=np.float32), np.full(shape, index)]
    with pytest.raises(RunError, match=f"index {index} is outside axis 1, which has size 3"):
        run_op(op, arrays)


@pytest.mark.parametrize(("index", "outside"), [([7], 7), ([1, -4], -4), ([0, 3], 3)])
def test_a_known_index_outside_is_refused(index: list[int], outside: int) -> None:
    model = TypedModel()
    table, places = model.add_const("table", np.arange(3)), model.add_const("index", np.array(index))
    with pytest.raises(FactError, match=rf"node 'pick' \(Gather\): index {outside} is outside an axis of size 3"):
        model.wire_node("pick", Gather(0), [table, places])


@pytest.mark.parametrize("op", [Gather(0), GatherElements(0)])
@pytest.mark.parametrize(("index", "least"), [([1], 2), ([0, -3], 3), ([], 0)])
def test_a_known_index_of_a_symbolic_axis_is_a_condition(
    op: Gather | GatherElements, index: list[int], least: int
) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    model.set_outputs(model.wire_node("pick", op, [x, model.add_const("index", np.array(index, np.int64))]))
    plan = TypedSimplePlan(model)
    for size in range(5):
        array = np.arange(size, dtype=np.float32)
        if size >= least:
            np.testing.assert_array_equal(plan.run([array])[0], array[index] if index else [])
        else:
            with pytest.raises(InputError, match=f"size S must be {least} or more; S is {size}"):
                plan.run([array])


def test_agrees_with_onnx_runtime(run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]]) -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(3, 4, 5)).astype(np.float32)
    indices = random.integers(-4, 4, (2, 3))
    assert np.array_equal(run_op(Gather(1), [x, indices])[0], run_onnx("Gather", [x, indices], axis=1)[0])
    indices = random.integers(-4, 4, (2, 6, 5))
    found, wanted = run_op(GatherElements(1), [x, indices])[0], run_onnx("GatherElements", [x, indices], axis=1)[0]
    assert np.array_equal(found, wanted)
    indices = random.integers(-4, 4, (3, 2, 1))
    assert np.array_equal(run_op(GatherNd(1), [x, indices])[0], run_onnx("GatherND", [x, indices], batch_dims=1)[0])


@pytest.mark.parametrize(("op", "indices"), [(Gather(0), np.array(1)), (GatherNd(0), np.array([1]))])
def test_a_single_text_stays_a_python_object(run_op: Callable[..., list[Array]], op: Any, indices: Array) -> None:
    (found,) = run_op(op, [np.array(["a", "bc"], object), indices])
    assert (found.dtype, found.shape, found.item()) == (np.dtype(object), (), "bc")
