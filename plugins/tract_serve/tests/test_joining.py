"""Which requests of real models are joined, and that joined ones get what they get alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from servers import identity, network, put, sum_and_difference
from tract_serve.batching.joining import RowsJoined
from tract_serve.batching.ragged import RaggedJoined, why_not_joined
from tract_serve.batching.rows import RowAxes, rows_of
from tract_serve.config import ModelConfig
from tract_serve.models.recipe import ServingRecipe
from tract_serve.models.served import Served
from tract_serve.models.trying import Tried
from tract_serve.tensors.ports import Signature

import tract_core as tract
from tract_core.errors import ModelError

FLOAT = TensorProto.FLOAT


def loaded(model: Any) -> tract.Model:
    return tract.load_bytes(model.SerializeToString())


def reduced(axis: int) -> Any:
    """A model that sums over an axis of x: N,S,4."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [axis])
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    sizes: list[int | str | None] = ["N", "S", 4]
    del sizes[axis]
    return network([node], [("x", FLOAT, ["N", "S", 4])], [("y", FLOAT, sizes)], [axes])


def masked_sum() -> Any:
    """A model that sums x: N,S,4 over S, where mask: N,S is not 0, and gives x with the mask besides."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    last = helper.make_tensor("last", TensorProto.INT64, [1], [2])
    nodes = [
        helper.make_node("Cast", ["mask"], ["weights"], to=FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["column"]),
        helper.make_node("Mul", ["x", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axes"], ["sum"], keepdims=0),
    ]
    inputs = [("x", FLOAT, ["N", "S", 4]), ("mask", TensorProto.INT64, ["N", "S"])]
    return network(nodes, inputs, [("sum", FLOAT, ["N", 4]), ("kept", FLOAT, ["N", "S", 4])], [axes, last])


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (identity(), RowAxes("N", (0,), (0,))),
        (sum_and_difference(), RowAxes("N", (0, 0), (0, 0))),
        (identity(sizes=(4, "N")), RowAxes("N", (1,), (1,))),
        (reduced(1), RowAxes("N", (0,), (0,))),
        (reduced(0), RowAxes("S", (1,), (0,))),
        (masked_sum(), RowAxes("N", (0, 0), (0, 0))),
    ],
)
def test_rows_are_found(model: Any, wanted: RowAxes) -> None:
    assert rows_of(loaded(model).typed) == wanted


def test_what_mixes_rows_has_none() -> None:
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [0])
    node = helper.make_node("ReduceSum", ["x", "axes"], ["mean"], keepdims=1)
    both = helper.make_node("Sub", ["x", "mean"], ["y"])
    model = network([node, both], [("x", FLOAT, ["N", 4])], [("y", FLOAT, ["N", 4])], [axes])
    assert "depends on the others" in str(rows_of(loaded(model).typed))
    assert rows_of(loaded(identity(sizes=(2, 3))).typed) == "no size of all inputs is one symbol"


def test_joined_along_an_axis_that_is_not_the_first() -> None:
    joining = RowsJoined(RowAxes("N", (1,), (1,)))
    requests = [[np.arange(6.0).reshape(3, 2)], [np.arange(3.0).reshape(3, 1)]]
    (whole,) = joining.joined(requests)
    assert whole.shape == (3, 3)
    for request, (part,) in zip(requests, joining.apart([whole], requests), strict=True):
        np.testing.assert_array_equal(part, request[0])
    assert joining.key(requests[0]) == joining.key(requests[1]) != joining.key([np.zeros((4, 1))])


def ragged(model: Any, names: list[str]) -> tuple[RaggedJoined, Signature, tract.Runnable]:
    typed = loaded(model)
    rows = rows_of(typed.typed)
    assert isinstance(rows, RowAxes)
    runnable = typed.into_runnable()
    signature = Signature.of(runnable)
    return RaggedJoined(rows, signature, names), signature, runnable


@pytest.mark.parametrize("lengths", [(1, 1), (4, 7), (5, 5, 4), (6, 4, 7, 5)])
def test_requests_of_different_lengths(lengths: tuple[int, ...]) -> None:
    joining, signature, runnable = ragged(masked_sum(), ["x", "mask"])
    assert why_not_joined(joining, signature, lambda inputs: [np.asarray(one) for one in runnable.run(inputs)]) == ""
    random = np.random.default_rng(sum(lengths))
    requests = [
        [random.standard_normal((1, length, 4), np.float32), np.ones((1, length), np.int64)] for length in lengths
    ]
    assert len({joining.key(one) for one in requests}) == 1
    outputs = [np.asarray(one) for one in runnable.run(joining.joined(requests))]
    for request, parts in zip(requests, joining.apart(outputs, requests), strict=True):
        np.testing.assert_allclose(parts[0], request[0].astype(np.float64).sum(1), rtol=0, atol=1e-5)
        np.testing.assert_array_equal(parts[1], request[0])


def test_lengths_that_are_far_apart_do_not_go_together() -> None:
    joining, _, _ = ragged(masked_sum(), ["x", "mask"])
    short, long = ([np.zeros((1, n, 4), np.float32), np.ones((1, n), np.int64)] for n in (3, 300))
    assert joining.key(short) != joining.key(long)


def test_a_model_that_does_not_know_lengths_is_refused(tmp_path: Path) -> None:
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    node = helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=0)
    model = network([node], [("x", FLOAT, ["N", "S", 4])], [("y", FLOAT, ["N", 4])], [axes])
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    config = ModelConfig.of_text('input { name: "x" allow_ragged_batch: true }', "config")
    rows = rows_of(tract.load(path).typed)
    assert isinstance(rows, RowAxes)
    with pytest.raises(ModelError, match="y of a request that was filled up is not what it is alone"):
        Served("mean", "1", ServingRecipe(str(path)), config, Tried(rows))


def test_what_cannot_be_joined_and_is_asked_for_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "fixed", identity(sizes=(2, 3))) / "1" / "model.onnx"
    config = ModelConfig.of_text("dynamic_batching { }", "config")
    with pytest.raises(ModelError, match="requests cannot be joined: no size of all inputs is one symbol"):
        Served("fixed", "1", ServingRecipe(str(path)), config, Tried(None, "no size of all inputs is one symbol"))
