"""Connections over HTTP that are no good: lines, headers and frames, slow clients, silent ones, and too many of them.

After each, another client still gets right answers. In the end the server, a process of its own, has logged no failure,
and holds little more memory than in the beginning (`hostile.watched`).
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hostile import GOOD, INFER, LENGTH, answered, answers_others, ask, connected, head, refused, request, watched
from servers import Process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with watched(tmp_path_factory.mktemp("models")) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_is_disturbed(server: Process) -> Iterator[None]:
    yield
    answers_others(server)


CHUNKED = "Transfer-Encoding: chunked\r\n"
NO_HTTP = "no request of HTTP"

LINES: dict[str, tuple[bytes, int, str]] = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n", 400, NO_HTTP),
    "another version": (b"GET /v2 HTTP/3.0\r\nHost: a\r\n\r\n", 400, NO_HTTP),
    "no version": (b"GET /v2\r\n\r\n", 400, NO_HTTP),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, NO_HTTP),
    "no host": (b"GET /v2 HTTP/1.1\r\n\r\n", 400, "0 headers 'host'"),
    "two hosts": (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "2 headers 'host'"),
    "a method that is none": (b"BREW /v2 HTTP/1.1\r\nHost: a\r\n\r\n", 400, NO_HTTP),
    "a method for nothing": (b"DELETE /v2 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "is asked by GET, not by DELETE"),
    "GET for infer": (b"GET /v2/models/plain/infer HTTP/1.1\r\nHost: a\r\n\r\n", 405, "is asked by POST, not by GET"),
    "OPTIONS for all": (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 404, "there is nothing at '*'"),
    "CONNECT": (b"CONNECT here:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400, ""),
    "no path": (b"GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400, ""),
    "a path that is no path": (b"GET v2 HTTP/1.1\r\nHost: a\r\n\r\n", 400, ""),
    "bytes in the path": (b"GET /v2/models/\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n", 400, ""),
    "an end of line in the path": (b"GET /v2/mo\rdels HTTP/1.1\r\nHost: a\r\n\r\n", 400, ""),
    "a header without a colon": (b"GET /v2 HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n", 400, NO_HTTP),
    "a header without a name": (b"GET /v2 HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400, NO_HTTP),
    "a space in a header's name": (b"GET /v2 HTTP/1.1\r\nHost: a\r\na b: x\r\n\r\n", 400, NO_HTTP),
    "a space behind a header's name": (b"GET /v2 HTTP/1.1\r\nHost: a\r\nContent-Length : 0\r\n\r\n", 400, ""),
    "a folded header": (b"GET /v2 HTTP/1.1\r\nHost: a\r\nx: a\r\n b\r\n\r\n", 400, NO_HTTP),
    "a zero in a header": (b"GET /v2 HTTP/1.1\r\nHost: a\r\nx: a\x00b\r\n\r\n", 400, NO_HTTP),
    "bytes in a header's name": (b"GET /v2 HTTP/1.1\r\nHost: a\r\n\xffx: a\r\n\r\n", 400, NO_HTTP),
    "a length that is no number": (request(INFER, told=-1, headers="Content-Length: x\r\n"), 400, NO_HTTP),
    "a negative length": (request(INFER, told=-1, headers="Content-Length: -5\r\n"), 400, NO_HTTP),
    "a huge length": (request(INFER, told=-1, headers=f"Content-Length: {'9' * 30}\r\n"), 400, NO_HTTP),
    "two lengths": (request(INFER, b"{}", headers="Content-Length: 3\r\n"), 400, NO_HTTP),
    "length and chunks": (request(INFER, b"0\r\n\r\n", headers=CHUNKED), 400, NO_HTTP),
    "chunks and length": (
        b"POST /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        400,
        NO_HTTP,
    ),
    "another transfer encoding": (request(INFER, headers="Transfer-Encoding: gzip\r\n", told=-1), 400, NO_HTTP),
    "chunked twice": (request(INFER, headers="Transfer-Encoding: chunked, identity\r\n", told=-1), 400, NO_HTTP),
    "a chunk that is no number": (
        request(INFER, b"zz\r\n{}\r\n0\r\n\r\n", headers=CHUNKED, told=-1),
        400,
        "",
    ),
    "a huge chunk": (
        request(INFER, b"f" * 30 + b"\r\n", headers=CHUNKED, told=-1),
        400,
        "",
    ),
    "a long path": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431, "more than 8192 bytes"),
    "a long header": (b"GET /v2 HTTP/1.1\r\nHost: a\r\nx: " + b"a" * 9000 + b"\r\n\r\n", 431, "more than 8192 bytes"),
    "many headers": (b"GET /v2 HTTP/1.1\r\nHost: a\r\n" + b"a:\r\n" * 300 + b"\r\n", 431, "more than 256 headers"),
    "headers that together are long": (
        b"GET /v2 HTTP/1.1\r\nHost: a\r\n" + (b"y: " + b"a" * 50 + b"\r\n") * 200 + b"\r\n",
        431,
        "more than 8192 bytes",
    ),
}


def sent_until_ended(server: Process, begin: bytes, piece: bytes, pause: float) -> float:
    """Send pieces until the server ends the connection; seconds that it let that go on, 20 at most."""
    begun = time.monotonic()
    with connected(server) as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(begin)
        while time.monotonic() - begun < 20:
            connection.sendall(piece)
            time.sleep(pause)
    return time.monotonic() - begun


@pytest.mark.parametrize("name", LINES)
def test_lines_and_headers(server: Process, name: str) -> None:
    content, status, reason = LINES[name]
    refused(server, content, status, reason)


def test_headers_without_end(server: Process) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: a\r\n")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(400):
                connection.sendall(b"x: " + b"a" * 1000)
        assert answered(connection)[0] in (0, 431)


def test_headers_behind_a_body_without_end(server: Process) -> None:
    content = request(INFER, b"0\r\n", headers=CHUNKED, told=-1)
    assert sent_until_ended(server, content, b"x: " + b"a" * 1000 + b"\r\n", 0.001) < 8


# Slowness


def test_a_body_without_end_is_cut_off(server: Process) -> None:
    content = request("/none", headers=CHUNKED, told=-1)
    assert sent_until_ended(server, content, b"10000\r\n" + bytes(1 << 16) + b"\r\n", 0.005) < 8


def test_headers_that_drip(server: Process) -> None:
    begun = time.monotonic()
    with connected(server) as connection:
        for sign in b"GET /v2 HTTP/1.1\r\nHost: here and there and everywhere\r\n":
            try:
                connection.sendall(bytes([sign]))
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.06)
        status, _ = answered(connection)
    assert status in (0, 408)
    assert time.monotonic() - begun < 5


def test_headers_that_stop(server: Process) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: a\r\n")
        status, answer = answered(connection)
    assert (status, answer["error"]) == (408, "the request did not come within 1.5 seconds")


def test_a_body_that_drips(server: Process) -> None:
    begun = time.monotonic()
    with connected(server) as connection:
        connection.sendall(request(INFER, b"{", told=100))
        while time.monotonic() - begun < 1.9:
            connection.sendall(b" ")
            time.sleep(0.1)
        status, answer = answered(connection)
    assert (status, answer["error"]) == (408, "the request did not come within 1.5 seconds")
    assert time.monotonic() - begun < 4


@pytest.mark.parametrize("begin", [b"", b"\r\n", request("/v2", method="GET")])
def test_silence(server: Process, begin: bytes) -> None:
    begun = time.monotonic()
    with connected(server) as connection:
        connection.sendall(begin)
        if len(begin) > 2:
            assert answered(connection)[0] == 200
        assert connection.recv(1) == b""
    assert time.monotonic() - begun < 5


def test_ends_of_lines_without_end(server: Process) -> None:
    assert sent_until_ended(server, b"", b"\r\n", 0.05) < 8


def test_an_answer_that_nobody_takes(server: Process) -> None:
    """Its connection is ended, and what it held is free again."""
    array = np.full(
        (1, 650_000), 0.12345678, np.float32
    )  # of which JSON has 7 MB, and no system that much for one client
    told = head("FP32", list(array.shape), array.nbytes)
    content = request(INFER, told + array.tobytes(), headers=f"{LENGTH}{len(told)}\r\n")
    made = [connected(server) for _ in range(3)]
    seen = 0
    for connection in made:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(content)
        seen = max(seen, connections_of(server))
    assert seen
    until = time.monotonic() + 10
    while time.monotonic() < until and connections_of(server):
        time.sleep(0.1)
    assert not connections_of(server)
    for connection in made:
        connection.close()


def connections_of(server: Process) -> int:
    """How many connections of clients the server's process has, as Linux says it."""
    port = int(server.http.rpartition(":")[2])
    lines = [line.split() for line in Path(f"/proc/{server.process.pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(int(line[1].rpartition(":")[2], 16) == port and line[3] == "01" and line[9] != "0" for line in lines)


def test_clients_that_leave_in_the_middle(server: Process) -> None:
    for content in (request(INFER, b"{", told=1000), request(INFER, json.dumps(GOOD).encode()), b"GET /v2 HT", b""):
        for _ in range(5):
            with connected(server) as connection:
                connection.sendall(content)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # ended by a reset


def test_a_client_that_leaves_takes_its_request_along(server: Process) -> None:
    body = json.dumps({"inputs": [
        {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]},
        {"name": "turns", "datatype": "INT64", "shape": [], "data": [4_000_000]},
    ]}).encode()  # fmt: skip
    content = request("/v2/models/slow/infer", body)
    begun = time.monotonic()
    assert ask(server, content)[0] == 200
    alone = time.monotonic() - begun
    made = [connected(server) for _ in range(12)]
    for connection in made:
        connection.sendall(content)
    time.sleep(alone / 4)
    for connection in made:
        connection.close()
    begun = time.monotonic()
    assert ask(server, request("/v2/models/slow/infer", body.replace(b"4000000", b"1")))[0] == 200
    assert time.monotonic() - begun < 6 * alone + 0.5, "the requests of clients that had left were run"


# Connections


def test_more_connections_than_are_taken(server: Process) -> None:
    begun = [connected(server) for _ in range(48)]
    for connection in begun:
        connection.sendall(request(INFER, b"{", told=1000))
    time.sleep(0.6)
    more = [connected(server) for _ in range(12)]
    found = [answered(connection) for connection in more]
    assert {status for status, _ in found} == {503}
    assert all(answer["error"] == "48 connections are open, and no more are taken" for _, answer in found)
    for connection in [*begun, *more]:
        connection.close()
    time.sleep(0.1)


def test_silent_connections_make_place(server: Process) -> None:
    """For those that ask: the one that has been silent for the longest time is closed."""
    silent = [connected(server) for _ in range(300)]
    for _ in range(5):
        assert ask(server, request("/v2/health/live", method="GET")) == (200, {"live": True})
    for connection in silent:
        connection.close()


def test_requests_one_behind_the_other(server: Process) -> None:
    one = request(INFER, json.dumps(GOOD | {"id": "ID"}).encode())
    with connected(server) as connection:
        connection.sendall(b"".join(one.replace(b"ID", b"%02d" % number) for number in range(10)))
        data = b""
        while data.count(b'"id":"') < 10:
            part = connection.recv(1 << 16)
            assert part
            data += part
    places = [data.index(b'"id":"%02d"' % number) for number in range(10)]
    assert places == sorted(places)


def test_thousands_of_requests_in_one_packet(server: Process) -> None:
    with connected(server) as connection:
        data = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request("/v2/health/live", method="GET") * 5000)
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                data += part
    assert data.count(b"HTTP/1.1 200 OK") < 5000
    assert b"HTTP/1.1 431" not in data


def test_small_requests_behind_a_long_body_are_no_long_headers(server: Process) -> None:
    body = json.dumps(GOOD).encode() + b" " * 100_000
    with connected(server) as connection:
        connection.sendall(request(INFER, body) + request("/v2/health/live", method="GET"))
        assert answered(connection)[0] == 200


def test_smuggled_requests_are_not_answered(server: Process) -> None:
    smuggled = b"GET /v2/models/two HTTP/1.1\r\nHost: a\r\n\r\n"
    for content in (
        request(INFER, b"0\r\n\r\n" + smuggled, headers=CHUNKED),
        request(INFER, b"0\r\n\r\n" + smuggled, headers="Transfer-Encoding : chunked\r\n"),
        request(INFER, b"0\r\n\r\n" + smuggled, headers="Transfer-Encoding: xchunked\r\n"),
        request(INFER, b"0\r\n\r\n" + smuggled, headers="Transfer-Encoding:\x0bchunked\r\n"),
        b"GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + smuggled,
    ):
        with connected(server) as connection:
            connection.sendall(content)
            data = b""
            with contextlib.suppress(ConnectionResetError, TimeoutError):
                while part := connection.recv(1 << 16):
                    data += part
        assert b'"two"' not in data


def test_http_1_0_is_answered_once(server: Process) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /v2/health/live HTTP/1.0\r\n\r\n")
        assert answered(connection)[0] == 200
        assert connection.recv(1) == b""


@pytest.mark.parametrize("upgrade", ["h2c", "nothing", "h2c, websocket"])
@pytest.mark.parametrize("whole", [True, False])
def test_upgrades_that_are_not_taken(server: Process, upgrade: str, whole: bool) -> None:
    """Their requests count all the same, with their bodies, which are none of their own. Java's client asks so."""
    headers = f"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAEAAEAA\r\n"
    body = json.dumps(GOOD).encode()
    smuggled = request("/v2/models/two", method="GET")
    with connected(server) as connection:
        for content in (body, smuggled):
            sent = request(INFER, content, headers=headers)
            head = sent[: -len(content)]
            connection.sendall(sent if whole else head)
            if not whole:
                time.sleep(0.02)
                connection.sendall(content)
            status, answer = answered(connection)
            if content is body:
                assert (status, answer["outputs"][0]["data"]) == (200, [1.0, 2.0, 3.0])
            else:
                assert (status, answer["error"][:18]) == (400, "the body is no JSO")
        connection.sendall(request("/v2/health/live", method="GET"))
        assert answered(connection) == (200, {"live": True})


def test_an_upgrade_to_websocket_that_is_none(server: Process) -> None:
    headers = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    refused(server, request(INFER, b"{}", headers=headers), 400, "'inputs' is missing")
    assert ask(server, request("/v2/health/live", method="GET", headers=headers))[0] == 400
