"""A server with small limits as a process of its own, and plain requests to it, whole or not."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from onnx import TensorProto
from servers import Process, identity, process, put, slow, sum_and_difference

LIMITS = {
    "header_bytes": 8192,
    "body_bytes": 4 << 20,
    "bodies_bytes": 64 << 20,
    "json_bytes": 1 << 20,
    "grpc_bytes": 4 << 20,
    "response_bytes": 8 << 20,
    "read_s": 1.5,
    "write_s": 1.5,
    "idle_s": 2.0,
    "connections": 48,
    "streams": 5,
}

GOOD = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
INFER = "/v2/models/plain/infer"
LENGTH = "Inference-Header-Content-Length: "
MIB = 1 << 20


def models(folder: Path) -> Path:
    """A repository of small models."""
    put(folder, "plain", identity())
    put(folder, "texts", identity(TensorProto.STRING))
    put(folder, "whole", identity(TensorProto.INT8))
    put(folder, "flags", identity(TensorProto.BOOL))
    put(folder, "two", sum_and_difference())
    put(folder, "slow", slow())
    return folder


@contextlib.contextmanager
def watched(folder: Path) -> Generator[Process]:
    """A server of these models. In the end it is there, has logged no failure, and holds little more than at first."""
    options = [word for name, value in LIMITS.items() for word in ("--serve-limit", f"{name}={value}")]
    with process(models(folder), *options, "--watch", "0") as running:
        for _ in range(3):
            assert ask(running, request(INFER, json.dumps(GOOD).encode()))[0] == 200
        before = running.memory
        yield running
        after, log = running.memory, running.log
        assert running.process.poll() is None
        assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:6000]
        assert '"level": "error"' not in log
        assert after - before < 160 * MIB, f"{(after - before) // MIB} MiB more than before"


def answers_others(server: Process) -> None:
    """Check that another client is answered, rightly and in time."""
    begun = time.monotonic()
    status, answer = ask(server, request(INFER, json.dumps(GOOD).encode()))
    assert (status, answer["outputs"][0]["data"]) == (200, [1.0, 2.0, 3.0])
    assert time.monotonic() - begun < 5


def connected(server: Process) -> socket.socket:
    host, _, port = server.http.partition(":")
    made = socket.create_connection((host, int(port)), timeout=15)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def request(path: str, body: bytes = b"", method: str = "POST", headers: str = "", *, told: int | None = None) -> bytes:
    """A request. ``headers``: lines; ``told``: the length that it claims; -1 for none."""
    length = "" if told == -1 else f"Content-Length: {len(body) if told is None else told}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: here\r\n{length}{headers}\r\n".encode("latin-1") + body


def answered(connection: socket.socket) -> tuple[int, Any]:
    """Status and JSON of one answer; 0 where the connection ends without one."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            part = connection.recv(1 << 16)
            if not part:
                return 0, data
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
        while len(body) < length:
            part = connection.recv(1 << 16)
            if not part:
                break
            body += part
    except ConnectionResetError:
        return 0, data
    try:
        return int(lines[0].split()[1]), json.loads(body[:length] or b"{}")
    except ValueError:
        return int(lines[0].split()[1]), body


def ask(server: Process, content: bytes) -> tuple[int, Any]:
    """Status and JSON of what is answered to that on a connection of its own."""
    with connected(server) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(content)
        return answered(connection)


def refused(server: Process, content: bytes, status: int, reason: str) -> None:
    """Check that something is refused, with that status and reason."""
    found, answer = ask(server, content)
    assert found == status, (found, answer)
    assert isinstance(answer["error"], str)
    assert reason in answer["error"], answer


def asked(**changes: Any) -> bytes:
    """A request for ``plain`` whose only input has other fields; ``None`` leaves one out."""
    tensor = GOOD["inputs"][0] | changes
    return json.dumps({"inputs": [{name: value for name, value in tensor.items() if value is not None}]}).encode()


def said(**changes: Any) -> bytes:
    """A request for ``plain`` with other fields of its own."""
    return json.dumps(GOOD | changes).encode()


def head(datatype: str, shape: list[int], size: int) -> bytes:
    """The JSON of a request whose tensor comes as so many bytes."""
    tensor = {"name": "x", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": size}}
    return json.dumps({"inputs": [tensor]}).encode()


def shared(size: int | None = 12, offset: int | None = None, region: Any = "none") -> dict[str, Any]:
    """Parameters of a tensor in shared memory."""
    told = {"shared_memory_region": region, "shared_memory_byte_size": size, "shared_memory_offset": offset}
    return {name: value for name, value in told.items() if value is not None}
