"""Models whose files clients send with ``load``."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto, helper
from servers import Running, network, put, serving
from tract_serve.errors import BadRequest, Failed, RequestTooLarge
from tract_serve.repository.repository import Repository
from tract_serve.settings import Limits, Settings
from tritonclient.utils import InferenceServerException

FLOAT = TensorProto.FLOAT


def scaled(by: float) -> bytes:
    """``y`` = ``x`` [N] times a number."""
    node = helper.make_node("Mul", ["x", "by"], ["y"])
    made = [helper.make_tensor("by", FLOAT, [], [by])]
    return network([node], [("x", FLOAT, ["N"])], [("y", FLOAT, ["N"])], made).SerializeToString()


def negative() -> Any:
    """``y`` = -``x`` [N]."""
    return network([helper.make_node("Neg", ["x"], ["y"])], [("x", FLOAT, ["N"])], [("y", FLOAT, ["N"])])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    sent = tmp_path / "sent"
    sent.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(sent))
    folder = tmp_path / "repository"
    put(folder, "there", negative())
    with serving(folder, watch_s=0.05) as running:
        yield running
    assert [*sent.iterdir()] == []


@pytest.fixture(params=[tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


class Client:
    """Loads and asks."""

    def __init__(self, server: Running, module: Any) -> None:
        self._module = module
        self.client = module.InferenceServerClient(server.http if module is tritonclient.http else server.grpc)

    def load(self, name: str, files: Mapping[str, bytes], config: str | None = "{}") -> None:
        self.client.load_model(name, config=config, files={f"file:{path}": one for path, one in files.items()})

    def ask(self, name: str, version: str = "") -> float:
        given = self._module.InferInput("x", [1], "FP32")
        given.set_data_from_numpy(np.ones(1, np.float32))
        return float(self.client.infer(name, [given], model_version=version).as_numpy("y")[0])


def test_a_model_that_is_sent_is_served_until_it_is_unloaded(server: Running, module: Any) -> None:
    client = Client(server, module)
    policy = json.dumps({"version_policy": {"all": {}}, "max_batch_size": 3})
    client.load("mine", {"1/model.onnx": scaled(2), "20/model.onnx": scaled(3)}, policy)
    assert (client.ask("mine"), client.ask("mine", "1"), client.ask("mine", "20")) == (3, 2, 3)
    client.load("mine", {"1/model.onnx": scaled(5)})
    assert client.ask("mine") == 5
    client.client.load_model("mine")  # again, from the files that were sent
    assert client.ask("mine") == 5
    assert client.ask("there") == -1
    client.client.unload_model("mine")
    with pytest.raises(InferenceServerException, match=r"not ready|no model"):
        client.ask("mine")


def test_the_one_of_the_repository_comes_back(server: Running, module: Any) -> None:
    client = Client(server, module)
    client.load("there", {"1/model.onnx": scaled(4)})
    assert client.ask("there") == 4
    server.call(server.server.serving.repository.reload())
    assert client.ask("there") == 4
    client.client.load_model("there")
    assert client.ask("there") == -1


def test_one_that_cannot_be_loaded_leaves_the_one_before(server: Running, module: Any) -> None:
    client = Client(server, module)
    client.load("mine", {"1/model.onnx": scaled(2)})
    for files, problem in (
        ({"1/model.onnx": b"no model"}, "model.onnx"),
        ({"notes": b"nothing"}, "it has no version that is served"),
        ({"1/a.onnx": scaled(1), "1/b.onnx": scaled(1)}, "."),
        ({"1": b"", "1/model.onnx": scaled(1)}, "the files cannot be written"),
    ):
        with pytest.raises(InferenceServerException, match=problem):
            client.load("mine", files)
        assert client.ask("mine") == 2


@pytest.mark.parametrize(
    ("name", "path", "problem"),
    [
        *[
            ("mine", path, "wanted a plain name")
            for path in ("../model.onnx", "/etc/x", "1//x", "1/..", "1/.x", "a\\b")
        ],
        *[("mine", path, "wanted a plain name") for path in ("", "c:x", "a\nb", "x" * 201, "model.onnx ")],
        ("mine", "1/2/3/4/5", "has 5 parts, wanted at most 4"),
        *[(name, "1/model.onnx", "the name of the model is") for name in ("..", ".hidden", "x" * 201)],
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str, path: str, problem: str) -> None:
    put(tmp_path, "there", negative())

    async def loaded() -> None:
        repository = Repository(tmp_path, Settings(watch_s=0, preload=False))
        await repository.start()
        try:
            await repository.load(name, "{}", {path: scaled(2)})
        finally:
            await repository.close()

    with pytest.raises(BadRequest, match=problem):
        asyncio.run(loaded())


def test_they_are_bounded(tmp_path: Path) -> None:
    put(tmp_path, "there", negative())
    size = len(scaled(2))

    async def loaded() -> None:
        limits = Limits(sent_bytes=2 * size + 1)
        repository = Repository(tmp_path, Settings(watch_s=0, preload=False, limits=limits))
        await repository.start()
        for name in ("a", "b"):
            await repository.load(name, "{}", {"1/model.onnx": scaled(2)})
        for files in ({"1/model.onnx": scaled(2)}, {f"1/{n}": b"" for n in range(1001)}):
            with pytest.raises(RequestTooLarge, match="at most 1000 and"):
                await repository.load("c", "{}", files)
        with pytest.raises(RequestTooLarge, match="the model has 1 files"):  # both are there until the new one is ready
            await repository.load("a", "{}", {"1/model.onnx": scaled(3)})
        await repository.unload("b")
        await repository.load("a", "{}", {"1/model.onnx": scaled(3)})
        with pytest.raises(Failed):
            await repository.load("c", "{}", {"1/model.onnx": b"x"})
        await repository.load("c", "{}", {"1/model.onnx": scaled(2)})
        assert sorted(repository.models) == ["a", "c", "there"]
        await repository.close()

    asyncio.run(loaded())


def test_requests_that_are_none(server: Running) -> None:
    good = base64.b64encode(scaled(2)).decode()
    path = "/v2/repository/models/mine/load"
    for told, problem in (
        ({"file:1/model.onnx": good}, "files of a model come with its configuration"),
        ({"config": "{}", "file:1/model.onnx": 5}, "is a int, wanted a text of base64"),
        ({"config": "{}", "file:1/model.onnx": "%%"}, "is no base64"),
        ({"config": "{", "file:1/model.onnx": good}, "is no configuration of a model"),
    ):
        with pytest.raises(HTTPError) as caught:
            urlopen(f"http://{server.http}{path}", json.dumps({"parameters": told}).encode(), timeout=20)
        assert caught.value.code == 400
        assert problem in json.loads(caught.value.read())["error"]


def test_a_large_model_is_taken_over_grpc(server: Running) -> None:
    """More than other calls of control may bring, and not more than a request may."""
    client = Client(server, tritonclient.grpc)
    client.load("mine", {"1/model.onnx": scaled(2), "1/more": bytes(20 << 20)})
    assert client.ask("mine") == 2
    with pytest.raises(InferenceServerException, match="larger than max"):
        client.load("mine", {"1/model.onnx": scaled(3), "1/more": bytes(65 << 20)})
    with pytest.raises(InferenceServerException, match="has more than 10000 parts"):
        client.load("mine", {f"1/{number}": b"12345678" for number in range(10_001)})
