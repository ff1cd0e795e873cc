"""Rows and runs: symbolic sizes, fixed ones, one row at a time; and which rows a model fails on."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import dense_wanted
from tract_ray import Predictor
from tract_ray.rows import failing_rows

from tract_core.errors import RunError, TractError, Unsupported


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 32, 100])
@pytest.mark.parametrize("name", ["dense", "dense1", "dense16"])
def test_any_number_of_rows_through_models_of_any_batch(models, rows, name, count) -> None:
    found = Predictor(models[name])({"x": rows[:count]})["y"]
    assert found.shape == (count, 8)
    np.testing.assert_allclose(found, dense_wanted(rows[:count]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_model_without_an_axis_of_rows_runs_row_by_row(models, count) -> None:
    x = np.random.default_rng(0).standard_normal((count, 3, 5)).astype(np.float32)
    predictor = Predictor(models["of_one_row"], columns=[])
    found = predictor({"x": x})["total"]
    np.testing.assert_allclose(found, x.astype(np.float64).sum(axis=1), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(predictor({"x": x.reshape(count, 15)})["total"], found)


def test_rows_of_a_batch_of_one_may_have_that_axis_themselves(models, rows) -> None:
    predictor = Predictor(models["dense1"])
    np.testing.assert_array_equal(predictor({"x": rows[:, None]})["y"], predictor({"x": rows})["y"])


def test_facts_say_what_the_file_does_not(models, rows) -> None:
    predictor = Predictor(models["dense1"], facts={"x": "N,8,f32"})
    assert predictor._scoring._runs.most is None
    np.testing.assert_allclose(predictor({"x": rows})["y"], dense_wanted(rows), rtol=1e-5, atol=1e-5)


def test_runs_of_a_few_rows_give_what_such_batches_give(models, rows) -> None:
    parts = [Predictor(models["dense"])({"x": rows[at : at + 7]})["y"] for at in range(0, 100, 7)]
    whole = Predictor(models["dense"], at_once=7)({"x": rows})["y"]
    assert whole.tobytes() == np.concatenate(parts).tobytes()


def test_one_row_at_a_time_gives_the_same_bits_in_any_batch(models, rows) -> None:
    """What at_once=1 is for: elsewhere, last digits depend on the batch."""
    predictor = Predictor(models["dense"], at_once=1)
    whole, order = predictor({"x": rows})["y"], np.random.default_rng(0).permutation(100)
    assert predictor({"x": rows[order]})["y"].tobytes() == whole[order].tobytes()
    assert predictor({"x": rows[:3]})["y"].tobytes() == whole[:3].tobytes()


def test_several_inputs_and_outputs(models) -> None:
    left, right = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([10, 20], np.float32)
    found = Predictor(models["of_two"], inputs={"left": "a", "right": "b"}, columns=["b"])({"a": left, "b": right})
    assert list(found) == ["b", "sum", "total"]
    np.testing.assert_array_equal(found["sum"], left + right[:, None])
    np.testing.assert_array_equal(found["total"], (left + right[:, None]).sum(axis=1))


def test_outputs_that_are_wanted(models, rows) -> None:
    with pytest.raises(Unsupported, match=r"output 'mean' \(1,8 of float32\) has no axis of rows") as raised:
        Predictor(models["with_a_mean"])
    assert raised.value.hint == "name the outputs that are wanted: outputs={'scores': 'scores'}"
    found = Predictor(models["with_a_mean"], outputs={"y": "relu"})({"x": rows})
    assert list(found) == ["x", "relu"]
    np.testing.assert_array_equal(found["relu"], np.maximum(rows, 0))


def test_inputs_of_which_some_have_rows(models) -> None:
    with pytest.raises(Unsupported, match=r"some inputs have .* and 'right' \(1,1 of float32\) has none"):
        Predictor(models["of_two"], facts={"right": "1,1,f32"})


@settings(deadline=None)
@given(st.sets(st.integers(0, 199), max_size=8), st.integers(1, 200))
def test_bisection_finds_the_rows(bad: set[int], count: int) -> None:
    runs = 0

    def run(rows: list[int]) -> None:
        nonlocal runs
        runs += 1
        if bad & set(rows):
            raise RunError(f"row {min(bad & set(rows))}")

    there = sorted(row for row in bad if row < count)
    found = failing_rows(run, range(count)) if there else {}
    assert list(found) == there
    assert [error.problem for error in found.values()] == [f"row {row}" for row in there]
    assert runs <= len(there) * (2 * log2(count) + 3)


def test_bisection_ends_where_it_has_enough() -> None:
    calls: list[int] = []

    def run(rows: list[int]) -> None:
        calls.append(len(rows))
        raise RunError("never")

    assert list(failing_rows(run, range(10_000), 5)) == [0, 1, 2, 3, 4]
    assert len(calls) < 60


def test_one_bad_row_among_ten_thousand_costs_few_runs(models) -> None:
    predictor = Predictor(models["looked_up"], on_error="null")
    model, lengths = predictor._scoring._model, []
    run = model.run
    object.__setattr__(model, "run", lambda arrays: lengths.append(len(arrays[0])) or run(arrays))
    index = np.arange(10_000) % 10
    index[4711] = 12
    try:
        result = predictor({"index": index})
    finally:
        object.__setattr__(model, "run", run)
    assert np.flatnonzero(result["error"] != "").tolist() == [4711]
    assert len(lengths) <= 2 + 2 * log2(10_000) + 1
    assert sum(lengths) < 5 * 10_000


def test_rows_that_only_fail_together(models) -> None:
    """As where memory does not suffice for all: they are run in halves, unless errors are raised."""

    def run(arrays):
        if len(arrays[0]) > 30:
            raise RunError("too many")
        return [arrays[0]]

    for on_error in ("null", "raise"):
        predictor = Predictor(models["of_any_length"], on_error=on_error)
        model = predictor._scoring._model
        original = model.run
        object.__setattr__(model, "run", run)
        x = np.arange(200, dtype=np.float32).reshape(100, 2)
        try:
            if on_error == "null":
                np.testing.assert_array_equal(predictor({"x": x})["y"], x)
            else:
                with pytest.raises(TractError, match=r"^too many$"):
                    predictor({"x": x})
        finally:
            object.__setattr__(model, "run", original)
