"""Numbers drawn at random: their shapes, types and statistics; the same ones for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx_agree import is_refused
from onnx_check import load, run, single

from tract_core.errors import FactError, RunError
from tract_core.runtime.plan import TypedSimplePlan

X = np.zeros((40, 50), np.float32)


def drawn(op_type, inputs=(), **options):
    model, given = single(op_type, list(inputs), **options)
    return run(model, given)[0]


@pytest.mark.parametrize("like", [False, True])
def test_uniform_numbers(like):
    name, inputs = ("RandomUniformLike", [X]) if like else ("RandomUniform", [])
    shape = {} if like else {"shape": [40, 50]}
    found = drawn(name, inputs, low=-1.0, high=3.0, seed=3.0, **shape)
    assert found.shape == (40, 50)
    assert found.dtype == np.float32
    assert -1 <= found.min() < -0.9
    assert 2.9 < found.max() < 3
    assert abs(found.mean() - 1) < 0.1


@pytest.mark.parametrize("like", [False, True])
def test_normal_numbers(like):
    name, inputs = ("RandomNormalLike", [X]) if like else ("RandomNormal", [])
    shape = {} if like else {"shape": [40, 50]}
    found = drawn(name, inputs, mean=5.0, scale=2.0, dtype=TensorProto.DOUBLE, **shape)
    assert found.shape == (40, 50)
    assert found.dtype == np.float64
    assert abs(found.mean() - 5) < 0.3
    assert abs(found.std() - 2) < 0.2


def test_a_seed_gives_the_same_numbers_and_none_gives_others():
    for seed in ({"seed": 7.0}, {}):
        model, given = single("RandomNormalLike", [X], **seed)
        plan = TypedSimplePlan(load(model).into_typed().declutter())
        first, second = (plan.run([given["x0"]])[0] for _ in range(2))
        assert (first == second).all() == bool(seed)


def test_two_nodes_without_a_seed_are_not_merged():
    model, _ = single("RandomUniform", [], shape=[4])
    twin = model.graph.node.add()
    twin.CopyFrom(model.graph.node[0])
    twin.output[0] = "y1"
    model.graph.output.add().name = "y1"
    first, second = run(model, {})
    assert (first != second).any()


def test_multinomial_draws_by_weight():
    weights = np.array([[1, 2, 5], [0, 1, 0]], np.float32)
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    found = drawn("Multinomial", [logs], sample_size=8000, seed=1.0, dtype=TensorProto.INT64)
    assert found.shape == (2, 8000)
    assert found.dtype == np.int64
    np.testing.assert_allclose(np.bincount(found[0], minlength=3) / 8000, [1 / 8, 2 / 8, 5 / 8], atol=0.02)
    assert (found[1] == 1).all()


def test_weights_without_a_sum():
    model, given = single("Multinomial", [np.full((1, 2), np.nan, np.float32)])
    with pytest.raises(RunError, match="no positive sum"):
        run(model, given)


def test_multinomial_wants_rows():
    is_refused(FactError, r"floats of shape \[rows, places\]", "Multinomial", [np.zeros(3, np.float32)])


def test_bernoulli():
    found = drawn("Bernoulli", [np.full((40, 50), 0.25, np.float32)], seed=2.0, opset=15)
    assert set(np.unique(found)) == {0, 1}
    assert abs(found.mean() - 0.25) < 0.05
    certain = np.array([0, 1, 0, 1], np.float64)
    np.testing.assert_array_equal(drawn("Bernoulli", [certain], opset=15, dtype=TensorProto.INT32), certain)


@pytest.mark.parametrize("fixed", [(1, 2), ()], ids=["constants", "inputs"])
def test_dropout_in_training(fixed):
    x = np.ones((40, 50), np.float32)
    model, given = single(
        "Dropout", [x, np.array(0.2, np.float32), np.array(True)], fixed=fixed, outputs=2, seed=5, symbolic=True
    )
    found, mask = run(model, given)
    assert mask.dtype == np.bool_
    np.testing.assert_allclose(found, np.where(mask, 1.25, 0), rtol=1e-6)
    assert abs(mask.mean() - 0.8) < 0.05


def test_dropout_that_only_a_run_turns_on():
    x = np.ones((4, 5), np.float32)
    model, given = single("Dropout", [x, np.array(0.5, np.float32), np.array(False)], outputs=2)
    for array in run(model, given):
        np.testing.assert_array_equal(array, np.ones((4, 5)))
    given["x1"] = np.array(1, np.float32)
    given["x2"] = np.array(True)
    with pytest.raises(RunError, match="the share of elements to drop is 1"):
        run(model, given)
