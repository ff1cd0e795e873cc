"""Mixed clients for a while, with models that are replaced under them: no answer is lost or somebody else's.

``LOAD_SECONDS`` says for how long, 15 unless it is set; from 600 on, times are judged too: the 99th percentile of each
model is at most five times its median. Memory is to be flat in any case.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto, helper
from servers import Process, identity, network, process, put

SECONDS = float(os.environ.get("LOAD_SECONDS", "15"))
EVERY = max(2.0, min(60.0, SECONDS / 8))
"""Seconds between two changes of a model."""


def scaled(factor: float) -> Any:
    """A model that multiplies x: N,16 by a number, and tells the number."""
    number = helper.make_tensor("number", TensorProto.FLOAT, [1], [factor])
    nodes = [helper.make_node("Mul", ["x", "number"], ["y"]), helper.make_node("Identity", ["number"], ["which"])]
    outputs = [("y", TensorProto.FLOAT, ["N", 16]), ("which", TensorProto.FLOAT, [1])]
    return network(nodes, [("x", TensorProto.FLOAT, ["N", 16])], outputs, [number])


def wide() -> Any:
    """A model of three products, x: N,256, that takes some milliseconds for many rows."""
    random = np.random.default_rng(3)
    weights = [random.standard_normal((256, 256)).astype(np.float32) / 16 for _ in range(3)]
    tensors = [onnx.numpy_helper.from_array(one, f"w{n}") for n, one in enumerate(weights)]
    names = ["x", "a", "b", "y"]
    nodes = [helper.make_node("MatMul", [names[n], f"w{n}"], [names[n + 1]]) for n in range(3)]
    sizes = ["N", 256]
    return network(nodes, [("x", TensorProto.FLOAT, sizes)], [("y", TensorProto.FLOAT, sizes)], tensors)


WEIGHTS = [
    np.random.default_rng(3).standard_normal((3, 256, 256)).astype(np.float32)[n].astype(np.float64) / 16
    for n in range(3)
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Path]]:
    folder = tmp_path_factory.mktemp("repository")
    put(folder, "scaled", scaled(1))
    put(folder, "wide", wide())
    put(folder, "texts", identity(TensorProto.STRING, ["N"]))
    with process(folder, "--watch", "0") as running:
        yield running, folder


class Client:
    """A client that asks one model after the other, and looks at each answer."""

    def __init__(self, server: Process, module: Any, seed: int) -> None:
        self.module, self.random = module, np.random.default_rng(seed)
        self.client = module.InferenceServerClient(server.http if module is tritonclient.http else server.grpc)
        self.times: dict[str, list[float]] = {"scaled": [], "wide": [], "texts": []}
        self.problem: BaseException | None = None

    def run(self, until: float) -> None:
        """Ask until then."""
        asks: list[Callable[[], None]] = [self.scaled, self.wide, self.texts]
        try:
            while time.monotonic() < until:
                asks[self.random.integers(len(asks))]()
        except BaseException as error:  # told by the test
            self.problem = error

    def ask(self, name: str, x: Any, datatype: str) -> Any:
        given = self.module.InferInput("x", list(x.shape), datatype)
        given.set_data_from_numpy(x)
        begun = time.perf_counter()
        answer = self.client.infer(name, [given], request_id=str(begun))
        self.times[name].append(time.perf_counter() - begun)
        told = answer.get_response()
        assert (told["id"] if isinstance(told, dict) else told.id) == str(begun)
        return answer

    def scaled(self) -> None:
        x = self.random.standard_normal((int(self.random.integers(1, 5)), 16)).astype(np.float32)
        answer = self.ask("scaled", x, "FP32")
        np.testing.assert_array_equal(answer.as_numpy("y"), x * answer.as_numpy("which"))

    def wide(self) -> None:
        x = self.random.standard_normal((int(self.random.integers(1, 33)), 256)).astype(np.float32)
        wanted = x.astype(np.float64)
        for one in WEIGHTS:
            wanted = wanted @ one
        np.testing.assert_allclose(self.ask("wide", x, "FP32").as_numpy("y"), wanted, rtol=0, atol=1e-3)

    def texts(self) -> None:
        texts = [bytes(self.random.bytes(int(n))) for n in self.random.integers(0, 30, 3)]
        x = np.array(texts, object)
        assert self.ask("texts", x, "BYTES").as_numpy("y").tolist() == texts


def test_nothing_is_lost_and_memory_is_flat(server: tuple[Process, Path]) -> None:
    running, folder = server
    clients = [Client(running, module, seed) for seed, module in enumerate([tritonclient.http, tritonclient.grpc] * 3)]
    begun = time.monotonic()
    threads = [threading.Thread(target=one.run, args=(begun + SECONDS,)) for one in clients]
    for thread in threads:
        thread.start()
    control = tritonclient.http.InferenceServerClient(running.http)
    changes, early = 0, 0
    while (left := begun + SECONDS - time.monotonic()) > 0:
        time.sleep(min(EVERY, left))
        if time.monotonic() - begun > SECONDS / 3 and not early:
            early = running.memory
        changes += 1
        put(folder, "scaled", scaled(2.0 + changes % 7))
        control.load_model("scaled")
    for thread in threads:
        thread.join()
    assert [one.problem for one in clients if one.problem is not None] == []
    assert changes >= 2
    assert running.memory < early * 1.15 + (8 << 20)
    _judge(clients)
    assert not [line for line in running.log.splitlines() if "traceback" in line.lower()]


def _judge(clients: list[Client]) -> None:
    """Say how long requests took; and see to it, where there were enough."""
    for name in clients[0].times:
        times = [one for client in clients for one in client.times[name]]
        p50, p99 = np.percentile(times, [50, 99]) * 1e3
        print(f"{name}: {len(times)} requests, p50 {p50:.2f} ms, p99 {p99:.2f} ms")  # noqa: T201 - for who runs it for an hour
        assert len(times) > 10
        assert SECONDS < 600 or p99 <= 5 * p50
