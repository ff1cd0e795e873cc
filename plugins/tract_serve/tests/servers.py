"""Servers for tests, on ports that are free, and folders of small models for them.

``with serving(folder) as server`` runs one in a thread: ``server.http`` and ``server.grpc`` are where it
listens, as ``127.0.0.1:40000``. ``with process(folder) as server`` runs ``tract serve`` as a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper
from tract_serve.server import Server
from tract_serve.settings import Limits, Settings

PATIENCE_S = 60.0
"""Seconds in which a server is started, or has ended."""


# Servers


class Running:
    """A server in a thread of this process. ``http``, ``grpc``: host and port; ``server``: itself."""

    def __init__(self, source: str | Path, settings: Settings) -> None:
        self._source, self._settings = source, settings
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)
        self.server: Server
        self.loop: asyncio.AbstractEventLoop

    @property
    def http(self) -> str:
        """Where it listens for HTTP."""
        return f"{self._settings.host}:{self.server.http_port}"

    @property
    def grpc(self) -> str:
        """Where it listens for gRPC."""
        return f"{self._settings.host}:{self.server.grpc_port}"

    def start(self) -> None:
        """Return once the models are loaded. Raises what the server raises."""
        self._thread.start()
        if not self._started.wait(PATIENCE_S):
            raise TimeoutError("the server did not start")
        if self._problem is not None:
            raise self._problem

    def end(self) -> None:
        """Return once it has ended. Raises what the server raises."""
        self.loop.call_soon_threadsafe(self.server.end)
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            raise TimeoutError("the server did not end")
        if self._problem is not None:
            raise self._problem

    def call(self, coroutine: Any) -> Any:
        """What a coroutine gives, run by the server's own event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # it is raised where the test waits
            self._problem = error
        self._started.set()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = Server(self._source, self._settings)
        await self.server.serve(lambda _: self._started.set())


@contextmanager
def serving(source: str | Path, **settings: Any) -> Generator[Running]:
    """A server of a folder of models, or of one model, in a thread. ``settings``: as `Settings` takes them.

    Unless they say otherwise: ports that are free, models loaded without a process of their own, files not watched.
    ``limits`` may be a dictionary.
    """
    limits = settings.pop("limits", {})
    given: dict[str, Any] = {"http_port": 0, "grpc_port": 0, "preload": False, "watch_s": 0.0}
    made = Settings(**(given | settings), limits=Limits(**limits) if isinstance(limits, dict) else limits)
    running = Running(source, made)
    running.start()
    try:
        yield running
    finally:
        running.end()


class Process:
    """``tract serve`` as a process. ``http``, ``grpc``: host and port, once `wait` has returned."""

    def __init__(self, source: str | Path, options: Sequence[str] = (), environment: Mapping[str, str] | None = None):
        """``options``: of the command line, besides those for ports and logs."""
        self._file = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115 - closed by `end`
        ports = [] if "--http-port" in options else ["--http-port", "0"]
        ports += [] if "--grpc-port" in options else ["--grpc-port", "0"]
        command = [sys.executable, "-m", "tract_core", "serve", str(source), *ports, "--log-json", *options]
        env = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen(command, stdout=self._file, stderr=subprocess.STDOUT, env=env)
        self.http = self.grpc = ""

    @property
    def log(self) -> str:
        """What it has written until now."""
        return Path(self._file.name).read_text()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of its log, those of JSON."""
        return [json.loads(line) for line in self.log.splitlines() if line.startswith('{"time"')]

    @property
    def memory(self) -> int:
        """Bytes of memory that it holds."""
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in told.splitlines() if line.startswith("VmRSS")) << 10

    def wait(self) -> None:
        """Return once it is ready."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.process.poll() is None:
            ready = [one for one in self.events if one["event"] == "server.ready"]
            if ready:
                self.http, self.grpc = (f"127.0.0.1:{ready[0][name]}" for name in ("http_port", "grpc_port"))
                return
            time.sleep(0.02)
        raise RuntimeError(f"the server did not start:\n{self.log}")

    def end(self, signal_: int = signal.SIGTERM) -> int:
        """Return its status once it has ended."""
        self.process.send_signal(signal_)
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self._file.close()


@contextmanager
def process(
    source: str | Path, *options: str, environment: Mapping[str, str] | None = None, wait: bool = True
) -> Generator[Process]:
    """``tract serve`` as a process of its own, with options; killed at the end if it is still there."""
    made = Process(source, options, environment)
    try:
        if wait:
            made.wait()
        yield made
    finally:
        made.end(signal.SIGKILL)


# Models

Port = tuple[str, int, Sequence[int | str | None]]
"""The name of an input or an output, its element type in ONNX, its sizes."""


def network(nodes: Sequence[Any], inputs: Sequence[Port], outputs: Sequence[Port], initializers: Any = ()) -> Any:
    """A model of ONNX."""
    infos = [[helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs)]
    graph = helper.make_graph(list(nodes), "network", *infos, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def identity(kind: int = TensorProto.FLOAT, sizes: Sequence[int | str | None] = ("N", "M")) -> Any:
    """A model that gives ``x`` back as ``y``."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return network([node], [("x", kind, sizes)], [("y", kind, sizes)])


def sum_and_difference(sizes: Sequence[int | str | None] = ("N", 4), kind: int = TensorProto.FLOAT) -> Any:
    """A model that gives ``sum`` and ``difference`` of ``a`` and ``b``."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])]
    return network(nodes, [("a", kind, sizes), ("b", kind, sizes)], [("sum", kind, sizes), ("difference", kind, sizes)])


def slow(sizes: Sequence[int | str | None] = ("N", 4)) -> Any:
    """A model that adds 1 to ``x`` as often as ``turns`` says, an int64 without axes, and gives ``y``.

    A request says so how long it takes: about 50 nanoseconds a turn, on the CPU runtime.
    """
    goes_on = helper.make_tensor("goes_on", TensorProto.BOOL, [], [True])
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["on_out"]), helper.make_node("Add", ["v", "one"], ["v_out"])],
        "body",
        [info("turn", TensorProto.INT64, []), info("on", TensorProto.BOOL, []), info("v", TensorProto.FLOAT, sizes)],
        [info("on_out", TensorProto.BOOL, []), info("v_out", TensorProto.FLOAT, sizes)],
    )
    loop = helper.make_node("Loop", ["turns", "goes_on", "x"], ["y"], body=body)
    inputs = [("x", TensorProto.FLOAT, sizes), ("turns", TensorProto.INT64, [])]
    return network([loop], inputs, [("y", TensorProto.FLOAT, sizes)], [one, goes_on])


def put(folder: Path, name: str, model: Any, version: int = 1, config: str | None = None) -> Path:
    """Write a model into a repository, as ``NAME/VERSION/model.onnx``; return the folder of its name."""
    place = folder / name / str(version)
    place.mkdir(parents=True, exist_ok=True)
    onnx.save(model, place / "model.onnx")
    if config is not None:
        (folder / name / "config.pbtxt").write_text(config)
    return folder / name
