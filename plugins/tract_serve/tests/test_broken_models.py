"""Models that end the process that makes them ready, never are ready, take all memory, or are no models at all.

Each is told by its reason; the others are answered meanwhile, and afterwards.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from servers import Process, identity, process, put
from tritonclient.grpc import service_pb2, service_pb2_grpc

RUNTIME = """
import os, resource, signal, time
from dataclasses import dataclass, field
from typing import ClassVar

from tract_core.runtime.plan import TypedSimplePlan


@dataclass(frozen=True, slots=True)
class BrokenRuntime:
    name: ClassVar[str] = "broken"
    how: str = field(default="", metadata={"doc": "what it does when it prepares a model"})

    def why_unusable(self):
        return None

    def prepare(self, model):
        if self.how == "aborts":
            os.abort()
        if self.how == "is_killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "hangs":
            time.sleep(3600)
        if self.how == "raises":
            raise KeyError("a mistake")
        if self.how == "prints":
            print("{}" * 100, flush=True)
        if self.how == "hoards":
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            return [bytearray(1 << 24) for _ in range(1000)]
        if self.how == "recurses":
            return self.prepare(model)
        return TypedSimplePlan(model)
"""

HOW = {
    "aborts": "it ended the process that tried it, with status -6",
    "is_killed": "it ended the process that tried it, with status -9",
    "hangs": "it was not ready within 5 seconds",
    "raises": "a mistake",
    "hoards": "there is not enough memory",
    "recurses": "RecursionError",
}

GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}).encode()


def configured(how: str) -> str:
    """A configuration, in JSON, with the runtime that is broken so."""
    return json.dumps({"parameters": {"runtime": {"string_value": f'broken(how="{how}")'}}})


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a plugin is installed that offers the runtime ``broken``."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "tract_broken-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tract-broken\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[tract]\nbroken = tract_broken_plugin\n")
    (folder / "tract_broken_runtime.py").write_text(RUNTIME)
    (folder / "tract_broken_plugin.py").write_text(
        "from tract_core.plugins.hookspecs import hookimpl\n\n\n"
        '@hookimpl\ndef tract_api_version():\n    return "1.0"\n\n\n'
        '@hookimpl\ndef tract_runtimes():\n    return {"broken": "tract_broken_runtime:BrokenRuntime"}\n'
    )
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, plugin: Path) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("models")
    put(folder, "a_good_one", identity())
    for how in (*HOW, "prints"):
        (put(folder, how, identity()) / "config.json").write_text(configured(how))
    for name, content in (("garbage", b"\xff" * 1000), ("empty", b""), ("text", b"this is no model")):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "1" / "model.onnx").write_bytes(content)
    put(folder, "misconfigured", identity(), config="max_batch_size: {")
    put(folder, "z_good_one", identity())
    environment = {"PYTHONPATH": ":".join([str(plugin), *filter(None, sys.path)])}
    with process(folder, "--watch", "0", "--serve-limit", "load_s=5", environment=environment) as running:
        yield running
        assert running.process.poll() is None
        assert "Traceback" not in running.log


def ask(server: Process, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request(method, path, body)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_others_are_ready(server: Process) -> None:
    ready = {one["model"]: one["time"] for one in server.events if one["event"] == "model.ready"}
    assert set(ready) == {"a_good_one", "z_good_one", "prints"}
    for name in ready:
        assert ask(server, "POST", f"/v2/models/{name}/infer", GOOD)[0] == 200
    assert ask(server, "GET", "/v2/health/ready")[0] == 200


@pytest.mark.parametrize("name", HOW)
def test_what_is_broken_says_why(server: Process, name: str) -> None:
    status, told = ask(server, "POST", "/v2/repository/index")
    entry = next(one for one in told if one["name"] == name)
    assert (status, entry["state"]) == (200, "UNAVAILABLE")
    assert HOW[name] in entry["reason"], entry
    status, told = ask(server, "POST", f"/v2/models/{name}/infer", GOOD)
    assert (status, HOW[name] in told["error"]) == (503, True)
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.ModelInfer(service_pb2.ModelInferRequest(model_name=name))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert HOW[name] in caught.value.details()
        assert not stub.ModelReady(service_pb2.ModelReadyRequest(name=name)).ready


@pytest.mark.parametrize("name", ["garbage", "empty", "text", "misconfigured"])
def test_files_that_are_no_models_say_why(server: Process, name: str) -> None:
    told = ask(server, "POST", "/v2/repository/index")[1]
    entry = next(one for one in told if one["name"] == name)
    assert entry["state"] == "UNAVAILABLE"
    assert entry["reason"]
    assert ask(server, "POST", f"/v2/models/{name}/infer", GOOD)[0] == 503


@pytest.mark.parametrize("name", ["aborts", "is_killed"])
def test_loading_it_again_fails_again_and_harms_no_other(server: Process, name: str) -> None:
    status, told = ask(server, "POST", f"/v2/repository/models/{name}/load")
    assert (status, HOW[name] in told["error"]) == (500, True)
    assert ask(server, "POST", "/v2/models/a_good_one/infer", GOOD)[0] == 200


def test_others_are_answered_while_one_hangs(server: Process) -> None:
    answers: list[tuple[int, Any]] = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, "POST", "/v2/repository/models/hangs/load")))
    thread.start()
    slowest = 0.0
    while thread.is_alive():
        begun = time.monotonic()
        assert ask(server, "POST", "/v2/models/a_good_one/infer", GOOD)[0] == 200
        slowest = max(slowest, time.monotonic() - begun)
        time.sleep(0.05)
    assert (answers[0][0], HOW["hangs"] in answers[0][1]["error"]) == (500, True)
    assert slowest < 2


def test_a_model_that_breaks_when_it_is_loaded_again_stays_as_it_was(server: Process) -> None:
    body = json.dumps({"parameters": {"config": configured("aborts")}}).encode()
    status, told = ask(server, "POST", "/v2/repository/models/z_good_one/load", body)
    assert (status, "status -6" in told["error"]) == (500, True)
    assert ask(server, "POST", "/v2/models/z_good_one/infer", GOOD)[0] == 200
