from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from onnx_policies import mlp, node, onnx_file, tensor, weights
from plain_loop import plain_rows, random_observations
from tract_inferers import BasicInferer, Batcher, DynamicInferer, FixedBatchInferer, MemoizingDynamicInferer
from tract_inferers.inferers.planned import Planned

import tract_core as tract
from tract_core.errors import InputError

ALL: dict[str, Callable[[Any], Planned]] = {
    "basic": BasicInferer.from_model,
    "fixed": lambda model: FixedBatchInferer.from_model(model, [4, 2, 4]),
    "dynamic": DynamicInferer.from_model,
    "memoizing": lambda model: MemoizingDynamicInferer.from_model(model, [5]),
    "background": lambda model: MemoizingDynamicInferer.from_model(model, background=True),
}
every_inferer = pytest.mark.parametrize("made", ALL.values(), ids=list(ALL))


def load(content: bytes) -> Any:
    return tract.onnx().load_bytes(content)


@every_inferer
@pytest.mark.parametrize("batch", ["unk__126", "N", None, 1])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_every_agent_gets_what_a_plain_loop_gives(made: Callable[[Any], Planned], batch: Any, rows: int) -> None:
    content = mlp(batch)
    inferer = made(load(content))
    observations = random_observations(inferer, rows)
    found = inferer.infer_many(range(rows), observations)
    for name, expected in plain_rows(content, observations).items():
        np.testing.assert_allclose(found.arrays[name], expected, rtol=1e-5, atol=1e-6)


@every_inferer
@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_element_types_are_those_of_the_model(made: Callable[[Any], Planned], kind: Any) -> None:
    content = mlp("N", kind=kind)
    inferer = made(load(content))
    observations = random_observations(inferer, 3)
    assert observations["obs"].dtype == kind
    found = inferer.infer_many(range(3), observations).arrays["action"]
    assert found.dtype == kind
    tolerance = 5e-3 if kind is np.float16 else 1e-12
    np.testing.assert_allclose(found, plain_rows(content, observations)["action"], rtol=tolerance, atol=tolerance)


@every_inferer
def test_the_model_stays_as_it_is(made: Callable[[Any], Planned]) -> None:
    untyped = load(mlp(1))
    made(untyped)
    typed = untyped.into_model()
    before = str(typed)
    made(typed)
    made(typed.typed)
    assert str(typed) == before
    assert typed.into_runnable().run([np.zeros([1, 64], np.float32)])[0].shape == (1, 8)


@every_inferer
def test_pickles(made: Callable[[Any], Planned]) -> None:
    inferer = made(load(mlp("N")))
    again = pickle.loads(pickle.dumps(inferer))
    observations = random_observations(inferer, 3)
    expected = inferer.infer_many(range(3), observations).arrays["action"]
    np.testing.assert_allclose(again.infer_many(range(3), observations).arrays["action"], expected, rtol=1e-6)


@every_inferer
def test_many_threads_may_use_one(made: Callable[[Any], Planned]) -> None:
    content = mlp("N")
    inferer = made(load(content))
    observations = random_observations(inferer, 24)
    expected = plain_rows(content, observations)["action"]

    def some(rows: int) -> None:
        for _ in range(20):
            found = inferer.infer_many(range(rows), {"obs": observations["obs"][:rows]}).arrays["action"]
            np.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-6)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, [1, 2, 3, 5, 8, 24, 1, 2]))


@every_inferer
def test_a_runtime_goes_by_name_or_is_one(made: Callable[[Any], Planned]) -> None:
    model = load(mlp("N"))
    kind = type(made(model))
    more = ([2],) if kind is FixedBatchInferer else ()
    for runtime in ("reference", tract.runtime_for_name("reference")):
        inferer = kind.from_model(model, *more, runtime=runtime)  # pyright: ignore[reportAttributeAccessIssue]: all have it
        assert inferer.infer_single({"obs": np.zeros(64, np.float32)})["action"].shape == (8,)
    with pytest.raises(InputError, match="a runtime goes by its name, or is a Runtime; got int"):
        kind.from_model(model, *more, runtime=3)  # pyright: ignore[reportAttributeAccessIssue]: as above


def pad_of(inferer: Planned, rows: int) -> Any:
    pad = Batcher(inferer, rows)
    pad.push_many(range(rows), random_observations(inferer, rows))
    return pad._pad.chunk(0, rows)


def test_rows_without_a_plan_are_refused() -> None:
    model = load(mlp("N"))
    basic, fixed = BasicInferer.from_model(model), FixedBatchInferer.from_model(model, [4, 2])
    with pytest.raises(InputError, match="BasicInferer takes one row at a time, got 2"):
        basic.infer_raw(pad_of(basic, 2))
    with pytest.raises(InputError, match=r"no plan for 3 rows; sizes: 4, 2, 1\n.*select_batch_size"):
        fixed.infer_raw(pad_of(fixed, 3))


def test_fixed_sizes_are_taken_from_the_largest_on() -> None:
    fixed = FixedBatchInferer.from_model(load(mlp("N")), [2, 4, 2, np.int64(8)])
    assert fixed.sizes == (8, 4, 2, 1)
    assert [fixed.select_batch_size(count) for count in (15, 7, 3, 1)] == [8, 4, 2, 1]


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "4", None])
def test_sizes_are_checked(size: Any) -> None:
    model = load(mlp("N"))
    with pytest.raises(InputError, match="is no number of agents, wanted an integer from 1"):
        FixedBatchInferer.from_model(model, [4, size])
    with pytest.raises(InputError, match="is no number of agents, wanted an integer from 1"):
        MemoizingDynamicInferer.from_model(model, [size])


def test_basic_takes_models_whose_size_cannot_grow() -> None:
    nodes = [
        node("MatMul", ["obs", "w"], ["x"]),
        node("Reshape", ["x", "flat"], ["y"]),
        node("MatMul", ["y", "v"], ["action"]),
        node("ReduceMax", ["action"], ["best"], keepdims=0),
    ]
    constants = {"w": weights(4, 3), "flat": np.array([1, 6]), "v": weights(6, 5)}
    inputs, outputs = [tensor("obs", [1, 2, 4])], [tensor("action", [1, 5]), tensor("best", [])]
    content = onnx_file(nodes, inputs, outputs, constants)
    basic = BasicInferer.from_model(load(content))
    assert [tuple(slot) for slot in basic.input_shapes()] == [("obs", (2, 4))]
    assert [tuple(slot) for slot in basic.output_shapes()] == [("action", (5,)), ("best", ())]
    observations = random_observations(basic, 4)
    found = basic.infer_many(range(4), observations)
    for name, expected in plain_rows(content, observations).items():
        np.testing.assert_allclose(found.arrays[name], expected.reshape(found.arrays[name].shape), rtol=1e-5)
