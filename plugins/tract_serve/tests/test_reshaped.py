"""Shapes of clients that are not those of the model, and labels of classes, as configurations of Triton name them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils
from onnx import TensorProto, helper
from servers import Running, network, put, serving
from tract_serve.repository.repository import Repository
from tract_serve.settings import Settings

CONFIG = """
name: "densenet"
platform: "onnxruntime_onnx"
max_batch_size : 0
input [ { name: "data" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 2, 2 ] reshape { shape: [ 1, 3, 2, 2 ] } } ]
output [
  { name: "fc" data_type: TYPE_FP32 dims: [ 3 ] reshape { shape: [ 1, 3, 1, 1 ] } label_filename: "labels.txt" }
]
"""
"""The form of the configuration that Triton's first steps are made with."""

BATCHED = """
max_batch_size: 8
input [ { name: "data" data_type: TYPE_FP32 dims: [ 12 ] reshape { shape: [ 3, 2, 2 ] } } ]
output [ { name: "fc" data_type: TYPE_FP32 dims: [ 3 ] reshape { shape: [ 3, 1, 1 ] } } ]
"""


def pooled(rows: int | str) -> Any:
    """The means of the channels of data: rows,3,2,2 as fc: rows,3,1,1."""
    node = helper.make_node("GlobalAveragePool", ["data"], ["fc"])
    kind = TensorProto.FLOAT
    return network([node], [("data", kind, [rows, 3, 2, 2])], [("fc", kind, [rows, 3, 1, 1])])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("repository")
    put(folder, "densenet", pooled(1), config=CONFIG)
    (folder / "densenet" / "labels.txt").write_text("cat\ndog\n")
    put(folder, "batched", pooled("N"), config=BATCHED)
    with serving(folder) as running:
        yield running


@pytest.mark.parametrize("module", [tritonclient.http, tritonclient.grpc])
@pytest.mark.parametrize(("name", "shape", "wanted"), [("densenet", (3, 2, 2), (3,)), ("batched", (5, 12), (5, 3))])
def test_clients_see_their_own_shapes(
    server: Running, module: Any, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    client = module.InferenceServerClient(server.http if module is tritonclient.http else server.grpc)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    given = module.InferInput("data", list(shape), "FP32")
    given.set_data_from_numpy(x)
    found = client.infer(name, [given]).as_numpy("fc")
    assert found.shape == wanted
    np.testing.assert_allclose(found, x.reshape(*wanted, 4).mean(-1), rtol=0, atol=1e-6)


def test_what_is_said_of_them(server: Running) -> None:
    client = tritonclient.http.InferenceServerClient(server.http)
    assert client.get_model_metadata("densenet")["inputs"][0]["shape"] == [3, 2, 2]
    assert client.get_model_metadata("batched")["outputs"][0]["shape"] == [-1, 3]
    given = tritonclient.http.InferInput("data", [1, 3, 2, 2], "FP32")
    given.set_data_from_numpy(np.zeros((1, 3, 2, 2), np.float32))
    with pytest.raises(
        tritonclient.utils.InferenceServerException, match=r"shape is \[1, 3, 2, 2\], wanted \[3, 2, 2\]"
    ):
        client.infer("densenet", [given])


def test_what_a_configuration_says_of_ports_is_told(server: Running) -> None:
    client = tritonclient.http.InferenceServerClient(server.http)
    told = client.get_model_config("densenet")
    (data,), (fc,) = told["input"], told["output"]
    assert (data["dims"], data["reshape"], data["format"]) == ([3, 2, 2], {"shape": [1, 3, 2, 2]}, "FORMAT_NCHW")
    assert (fc["dims"], fc["label_filename"]) == ([3], "labels.txt")
    assert [one["dims"] for one in client.get_model_config("batched")["input"]] == [[12]]


@pytest.mark.parametrize("module", [tritonclient.http, tritonclient.grpc])
def test_classes_have_labels_where_there_are_any(server: Running, module: Any) -> None:
    client = module.InferenceServerClient(server.http if module is tritonclient.http else server.grpc)
    given = module.InferInput("data", [3, 2, 2], "FP32")
    given.set_data_from_numpy(np.repeat(np.array([1, 5, 3], np.float32), 4).reshape(3, 2, 2))
    outputs = [module.InferRequestedOutput("fc", class_count=3)]
    found = client.infer("densenet", [given], outputs=outputs).as_numpy("fc").tolist()
    assert found == [b"5.000000:1:dog", b"3.000000:2", b"1.000000:0:cat"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (CONFIG.replace("[ 3, 2, 2 ] reshape", "[ 3, 2, 3 ] reshape"), "do not have as many elements"),
        (CONFIG.replace("[ 1, 3, 2, 2 ]", "[ 3, 2, 2, 1 ]"), "says reshape [3, 2, 2, 1], the model has [1, 3, 2, 2]"),
        (CONFIG.replace("labels.txt", "../labels.txt"), "there is no file '../labels.txt' of labels"),
        (CONFIG.replace("labels.txt", "nothing.txt"), "there is no file 'nothing.txt' of labels"),
    ],
)
def test_configurations_that_do_not_fit(tmp_path: Path, text: str, problem: str) -> None:
    put(tmp_path, "densenet", pooled(1), config=text)
    (tmp_path / "densenet" / "labels.txt").write_text("cat")

    async def started() -> str:
        repository = Repository(tmp_path, Settings(watch_s=0, preload=False))
        await repository.start()
        (entry,) = repository.index
        await repository.close()
        return entry.reason

    assert problem in asyncio.run(started())
