"""Bodies over HTTP, and paths, that are not what they should be: each is refused with the right status and a reason.

After each, another client still gets right answers. In the end the server, a process of its own, has logged no failure,
and holds little more memory than in the beginning (`hostile.watched`).
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import (
    GOOD,
    INFER,
    LENGTH,
    answered,
    answers_others,
    ask,
    asked,
    connected,
    head,
    refused,
    request,
    said,
    shared,
    watched,
)
from servers import Process, identity, put


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with watched(tmp_path_factory.mktemp("models")) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_is_disturbed(server: Process) -> Iterator[None]:
    yield
    answers_others(server)


HUGE = 1 << 62

BODIES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "is no JSON"),
    "no JSON": (b"{", 400, "is no JSON"),
    "two values": (b"{} {}", 400, "is no JSON"),
    "bad UTF-8": (b'{"inputs": "\xff\xfe"}', 400, "is no JSON"),
    "half a character": (b'{"inputs": "\\ud800"}', 400, "is no JSON"),
    "half a character beside NaN": (b'{"id": "\\ud800", "inputs": [NaN]}', 400, "is no JSON"),
    "nested lists": (b"[" * 200_000, 400, "is no JSON"),
    "closed nested lists": (b"[" * 200_000 + b"]" * 200_000, 400, "is no JSON"),
    "nested beside NaN": (b'{"a": NaN, "b": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", 400, "is no JSON"),
    "nested objects": (b'{"inputs":' * 90_000 + b"1" + b"}" * 90_000, 400, "is no JSON"),
    "a list": (b"[]", 400, "the body is a list, wanted an object"),
    "a number": (b"1", 400, "the body is a int, wanted an object"),
    "null": (b"null", 400, "wanted an object"),
    "no inputs": (b"{}", 400, "'inputs' is missing"),
    "inputs is an object": (b'{"inputs": {}}', 400, "wanted a list"),
    "inputs is a text": (b'{"inputs": "x"}', 400, "wanted a list"),
    "inputs of numbers": (b'{"inputs": [1, 2]}', 400, "input 0 is a int, wanted an object"),
    "none of the inputs": (b'{"inputs": []}', 400, "missing: x"),
    "an id that is a number": (b'{"id": 5, "inputs": []}', 400, "'id' is no text"),
    "parameters is a list": (b'{"parameters": [], "inputs": []}', 400, "'parameters' is a list"),
    "outputs is an object": (said(outputs={}), 400, "wanted a list"),
    "outputs of texts": (said(outputs=["y"]), 400, "output 0 is a str"),
    "an output twice": (said(outputs=[{"name": "y"}] * 2), 400, "asked for twice"),
    "an output that is not there": (said(outputs=[{"name": "z"}]), 400, "no output 'z'"),
    "too much classification": (
        said(outputs=[{"name": "y", "parameters": {"classification": -1}}]),
        400,
        "classification is -1",
    ),
    "no name": (asked(name=None), 400, "'name' is missing"),
    "a name that is a list": (asked(name=["x"]), 400, "'name' is missing, or no text"),
    "another name": (asked(name="z" * 100_000), 400, "missing: x; unknown: zzz"),
    "an input twice": (json.dumps({"inputs": GOOD["inputs"] * 2}).encode(), 400, "it comes twice"),
    "no type": (asked(datatype=None), 400, "datatype is a NoneType"),
    "a type that is none": (asked(datatype="FP8"), 400, "wanted one of BOOL"),
    "a type that is long": (asked(datatype="F" * 500_000), 400, "wanted one of BOOL"),
    "a type that is a list": (asked(datatype=[["FP32"]] * 1000), 400, "datatype is a list"),
    "another type": (asked(datatype="INT32"), 400, "datatype is INT32, wanted FP32"),
    "no shape": (asked(shape=None), 400, "shape is a NoneType"),
    "a shape that is a number": (asked(shape=3), 400, "wanted a list of whole numbers"),
    "a negative size": (asked(shape=[-1, 3]), 400, "shape has -1"),
    "a size that is no whole number": (asked(shape=[1.0, 3]), 400, "shape has 1.0"),
    "a size that is true": (asked(shape=[True, 3]), 400, "shape has True"),
    "a size that is a list": (asked(shape=[[1], 3]), 400, "shape has a list"),
    "a huge size": (asked(shape=[1 << 63, 3]), 400, "shape has 9223372036854775808"),
    "sizes whose product is huge": (asked(shape=[HUGE, HUGE]), 400, "more elements than there is memory"),
    "sizes whose product is 2^64": (asked(shape=[1 << 32, 1 << 32]), 400, "more elements than there is memory"),
    "huge sizes beside 0": (asked(shape=[0, HUGE, HUGE], data=[]), 400, "more elements than there is memory"),
    "a huge shape for few elements": (
        asked(shape=[1 << 30, 1 << 20]),
        400,
        "data has 3 elements, wanted 1125899906842624",
    ),
    "too many axes": (asked(shape=[1] * 65), 400, "at most 64"),
    "100,000 axes": (asked(shape=[1] * 100_000), 400, "at most 64"),
    "axes that the model has not": (asked(shape=[1, 1, 3]), 400, "shape is [1, 1, 3], wanted [-1, -1]"),
    "too few elements": (asked(data=[1, 2]), 400, "data has 2 elements, wanted 3"),
    "too many elements": (asked(data=[1, 2, 3, 4]), 400, "data has 4 elements, wanted 3"),
    "no data": (asked(data=None), 400, "wanted one of 'data'"),
    "data that is null": (json.dumps({"inputs": [GOOD["inputs"][0] | {"data": None}]}).encode(), 400, "a NoneType"),
    "data that is a number": (asked(data=1), 400, "data is 1, wanted a list"),
    "data that is a text": (asked(data="1,2,3"), 400, "wanted a list"),
    "data of objects": (asked(data=[{}, {}, {}]), 400, "something else than numbers"),
    "data of texts": (asked(data=["1", "2", "3"]), 400, "something else than numbers"),
    "a long text among numbers": (
        asked(data=["x" * 500_000, *[1] * 100_000], shape=[1, 100_001]),
        400,
        "else than numbers",
    ),
    "data of true and false": (asked(data=[True, False, 1]), 400, "something else than numbers"),
    "data with null": (asked(data=[1, None, 3]), 400, "something else than numbers"),
    "ragged": (asked(data=[[1, 2], [3]]), 400, "nested unevenly"),
    "lists beside numbers": (asked(data=[[1], 2, 3]), 400, "nested unevenly"),
    "numbers beside lists": (asked(data=[1, [2], 3]), 400, "something else than numbers"),
    "nested otherwise": (asked(data=[[1], [2], [3]]), 400, "nested as [3, 1], shape is [1, 3]"),
    "nested too deep": (
        asked(data=json.loads("[" * 900 + "1" + "]" * 900), shape=[1, 1]),
        400,
        "nested unevenly or too deep",
    ),
    "a number that is too large": (asked(data=[1e39, 2, 3]), 400, "too large for FP32"),
    "a whole number that is too large": (asked(data=[10**300, 2, 3]), 400, "too large for FP32"),
    "a number of 100,000 digits": (b'{"inputs": [' + b"9" * 100_000 + b"]}", 400, ""),
    "the same beside NaN": (b'{"a": NaN, "inputs": [' + b"9" * 100_000 + b"]}", 400, "is no JSON"),
    "a priority that is a text": (said(parameters={"priority": "x" * 100_000}), 400, "priority"),
    "a priority that is negative": (said(parameters={"priority": -1}), 400, "priority"),
    "a timeout that is huge": (said(parameters={"timeout": 1 << 64}), 400, "timeout"),
    "a timeout that is a list": (said(parameters={"timeout": [[]]}), 400, "timeout"),
    "memory that is not there": (asked(data=None, parameters=shared()), 404, "no region"),
    "memory without its size": (asked(data=None, parameters=shared(None)), 400, "byte_size' is missing"),
    "memory and data": (asked(parameters=shared()), 400, "wanted one of"),
    "memory named by a number": (asked(data=None, parameters=shared(region=1)), 400, "no text"),
    "bytes that did not come": (asked(data=None, parameters={"binary_data_size": 12}), 400, "0 bytes are left"),
    "a size of bytes that is negative": (
        asked(data=None, parameters={"binary_data_size": -12}),
        400,
        "binary_data_size is -12",
    ),
    "a size of bytes that is a text": (
        asked(data=None, parameters={"binary_data_size": "12"}),
        400,
        "binary_data_size is '12'",
    ),
    "a size of bytes that is huge": (
        asked(data=None, parameters={"binary_data_size": 1 << 62}),
        400,
        "are left behind the JSON",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(server: Process, name: str) -> None:
    body, status, reason = BODIES[name]
    refused(server, request(INFER, body), status, reason)


OTHER_TYPES: dict[str, tuple[str, str, list[Any], str]] = {
    "INT8 too large": ("whole", "INT8", [128], "numbers outside -128 to 127, which INT8 has"),
    "INT8 far too large": ("whole", "INT8", [1 << 63], "numbers outside"),
    "INT8 with a fraction": ("whole", "INT8", [1.5], "something else than whole numbers"),
    "INT8 that is true": ("whole", "INT8", [True], "something else than whole numbers"),
    "BOOL that is 1": ("flags", "BOOL", [1], "something else than true and false"),
    "BYTES that is 1": ("texts", "BYTES", [1], "something else than texts"),
    "BYTES that is a list": ("texts", "BYTES", [["a", ["b"]]], "texts"),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_elements_that_a_type_does_not_hold(server: Process, name: str) -> None:
    model, datatype, data, reason = OTHER_TYPES[name]
    shape = [1, 2] if isinstance(data[0], list) else [1, 1]
    body = json.dumps({"inputs": [{"name": "x", "datatype": datatype, "shape": shape, "data": data}]}).encode()
    refused(server, request(f"/v2/models/{model}/infer", body), 400, reason)


HEAD = head("FP32", [1, 3], 12)
TEXTS = head("BYTES", [1, 2], 10)

BINARY: dict[str, tuple[bytes, str, str]] = {
    "a length that is no number": (HEAD + bytes(12), "x", "wanted a number up to"),
    "a negative length": (HEAD + bytes(12), "-5", "wanted a number up to"),
    "a length with a sign": (HEAD + bytes(12), f"+{len(HEAD)}", "wanted a number up to"),
    "a length in other digits": (HEAD + bytes(12), "\xb2", "wanted a number up to"),
    "a length beyond the body": (HEAD + bytes(12), "100000", "wanted a number up to"),
    "a length of 1,000 digits": (HEAD + bytes(12), "9" * 1000, "wanted a number up to"),
    "a length in the middle of the JSON": (HEAD + bytes(12), "20", "is no JSON"),
    "a length behind the JSON": (HEAD + bytes(12), str(len(HEAD) + 1), "is no JSON"),
    "too few bytes": (HEAD + bytes(11), str(len(HEAD)), "11 bytes are left behind the JSON, wanted 12"),
    "too many bytes": (HEAD + bytes(13), str(len(HEAD)), "1 bytes are left behind the last input"),
    "a size that is not that of the shape": (
        HEAD.replace(b"12}", b"11}") + bytes(11),
        str(len(HEAD)),
        "11 bytes came, wanted 12 for FP32",
    ),
}


@pytest.mark.parametrize("name", BINARY)
def test_bytes_behind_the_json(server: Process, name: str) -> None:
    body, length, reason = BINARY[name]
    refused(server, request(INFER, body, headers=f"{LENGTH}{length}\r\n"), 400, reason)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xff\xff\xff\xff" + bytes(6), "element 0 of 2 ends behind the data"),
        (b"\x02\0\0\0ab\xff\xff\0\0", "element 1 of 2 ends behind the data"),
        (b"\0\0\0\0\0\0\0\0ab", "2 bytes are left behind the last element"),
        (b"\x06\0\0\0abcdef", "element 1 of 2 ends behind the data"),
    ],
)
def test_texts_whose_lengths_lie(server: Process, content: bytes, reason: str) -> None:
    headers = f"{LENGTH}{len(TEXTS)}\r\n"
    refused(server, request("/v2/models/texts/infer", TEXTS + content, headers=headers), 400, reason)


def test_flags_that_are_neither(server: Process) -> None:
    body = HEAD.replace(b"FP32", b"BOOL").replace(b"12}", b"3}")
    headers = f"{LENGTH}{len(body)}\r\n"
    refused(server, request("/v2/models/flags/infer", body + b"\x00\x02\x01", headers=headers), 400, "a BOOL is 2")


# Sizes and compression


def test_json_that_is_too_long(server: Process) -> None:
    body = asked(data=[1] * 600_000, shape=[1, 600_000])
    refused(server, request(INFER, body), 413, "send tensors as bytes")


def test_a_body_that_says_it_is_too_large(server: Process) -> None:
    refused(server, request(INFER, b"", told=5 << 20), 413, "at most 4194304 are taken")
    refused(server, request(INFER, b"", told=10**18), 413, "at most 4194304 are taken")


def test_a_body_that_becomes_too_large(server: Process) -> None:
    piece = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    with connected(server) as connection:
        connection.sendall(request(INFER, headers="Transfer-Encoding: chunked\r\n", told=-1))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(80):
                connection.sendall(piece)
        status, answer = answered(connection)
    assert (status, status and "at most 4194304" in answer["error"]) in ((413, True), (0, 0))


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_bomb(server: Process, packing: str) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if packing == "gzip" else 15)
    body = b"".join([packer.compress(bytes(1 << 20)) for _ in range(200)]) + packer.flush()
    assert len(body) < 1 << 20
    before = server.memory
    refused(server, request(INFER, body, headers=f"Content-Encoding: {packing}\r\n"), 413, "at most 4194304")
    assert server.memory - before < 32 << 20


PACKED = gzip.compress(json.dumps(GOOD).encode())


# Each is named: gzip writes the time of day, and tests are known by the same name in every process.
@pytest.mark.parametrize(
    ("packing", "body", "status", "reason"),
    [
        pytest.param("gzip", PACKED[:-9], 400, "ends in the middle", id="cut"),
        pytest.param("gzip", PACKED[:4], 400, "ends in the middle", id="cut in its header"),
        pytest.param("gzip", b"", 400, "ends in the middle", id="nothing"),
        pytest.param("gzip", b"plain", 400, "is no gzip", id="plain as gzip"),
        pytest.param("deflate", b"plain", 400, "is no deflate", id="plain as deflate"),
        pytest.param("gzip", PACKED[:-8] + bytes(8), 400, "is no gzip", id="another sum"),
        pytest.param("gzip", PACKED + b"more", 400, "are left behind the gzip", id="more behind"),
        pytest.param("gzip", PACKED + PACKED, 400, "are left behind the gzip", id="two"),
        pytest.param("gzip", gzip.compress(PACKED), 400, "is no JSON", id="packed twice"),
        pytest.param("br", PACKED, 415, "wanted gzip, deflate or none", id="brotli"),
        pytest.param("gzip, gzip", PACKED, 415, "wanted gzip, deflate or none", id="two names"),
        pytest.param("x" * 5000, PACKED, 415, "wanted gzip, deflate or none", id="a long name"),
    ],
)
def test_compression_that_is_none(server: Process, packing: str, body: bytes, status: int, reason: str) -> None:
    refused(server, request(INFER, body, headers=f"Content-Encoding: {packing}\r\n"), status, reason)


def test_many_requests_that_announce_much_take_no_room(server: Process) -> None:
    """Room is taken for what has come, so that who only announces holds up nobody."""
    waiting = [connected(server) for _ in range(30)]
    for connection in waiting:
        connection.sendall(request(INFER, b"{", told=4 << 20))
    status, _ = ask(server, request(INFER, json.dumps(GOOD).encode()))
    assert status == 200
    for connection in waiting:
        connection.close()


def test_requests_together_hold_no_more_than_there_is_room(server: Process) -> None:
    before = server.memory
    waiting = [connected(server) for _ in range(30)]
    statuses: list[int] = []
    for connection in waiting:
        connection.sendall(request(INFER, b" " * (3 << 20), told=(3 << 20) + 1))
    for connection in waiting[18:]:
        connection.settimeout(0.2)
        try:
            statuses.append(answered(connection)[0])
        except TimeoutError:
            statuses.append(0)
    assert ask(server, request(INFER, json.dumps(GOOD).encode()))[0] == 200
    assert server.memory - before < 128 << 20
    for connection in waiting:
        connection.settimeout(15)
        statuses.append(answered(connection)[0])
        connection.close()
    assert set(statuses) <= {0, 408, 503}
    assert {408, 503} <= set(statuses)


def test_an_answer_that_is_too_large(server: Process) -> None:
    body = head("BOOL", [1, 3_000_000], 3_000_000)
    headers = f"{LENGTH}{len(body)}\r\n"
    refused(server, request("/v2/models/flags/infer", body + bytes(3_000_000), headers=headers), 400, "are sent")


# Paths, and what changes the server


PATHS = [
    "/v2/models/../../etc/passwd",
    "/v2/models/..%2f..%2fetc%2fpasswd",
    "/v2/models/%2e%2e/%2e%2e/etc",
    "/v2/models/..%252f..%252fetc",
    "/v2/models/plain%00",
    "/v2/models/%ff%fe",
    "/v2/models/%",
    "/v2/models/%zz",
    "/v2/models/" + "a" * 5000,
    "/v2/models/plain/versions/../../two",
    "/v2/models/plain/versions/99999999999999999999999999",
    "/v2/models/plain/versions/-1",
    "/v2/models/plain/versions/%C2%B2",
    "//v2/models/plain",
    "/v2//models/plain",
    "/v2/models/plain/",
    "/v2/models/",
    "/v2/systemsharedmemory/region/%2e%2e/status",
    "/",
    "/favicon.ico",
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_that_lead_nowhere(server: Process, path: str) -> None:
    refused(server, request(path, method="GET"), 404, "there is n")


def test_a_name_is_decoded_once(server: Process) -> None:
    status, answer = ask(server, request("/v2/models/%70lain", method="GET"))
    assert (status, answer["name"]) == (200, "plain")
    refused(server, request("/v2/models/%2570lain", method="GET"), 404, "no model '%70lain'")


def test_models_outside_the_repository_are_not_loaded(server: Process, tmp_path: Path) -> None:
    put(tmp_path, "outside", identity())
    for name in ("..%2f..", "%2fetc", str(tmp_path / "outside").replace("/", "%2f")):
        refused(server, request(f"/v2/repository/models/{name}/load"), 404, "there is no model")


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/v2/repository/models/plain/load", b'{"parameters": []}', 400, "'parameters' is a list, wanted an object"),
        ("/v2/repository/models/plain/load", b'{"parameters": 5}', 400, "'parameters' is a int, wanted an object"),
        ("/v2/repository/models/plain/load", b'{"parameters": {"config": 5}}', 400, "'config' is no text"),
        ("/v2/repository/models/plain/load", b'{"parameters": {"config": "{"}}', 400, "is no configuration"),
        ("/v2/repository/models/plain/load", b'{"parameters": {"config": "x: y: z"}}', 400, "is no configuration"),
        (
            "/v2/repository/models/plain/load",
            json.dumps({"parameters": {"config": '{"a":' * 5000}}).encode(),
            400,
            "is no configuration",
        ),
        ("/v2/repository/models/plain/load", b" " * (3 << 20), 413, "at most 1048576"),
        ("/v2/repository/models/plain/unload", b" " * (3 << 20), 413, "at most 2097152"),
        ("/v2/repository/index", b"[1]", 400, "wanted an object"),
        ("/v2/trace/setting", b'{"trace_rate": [[[]]]}', 400, "trace_rate"),
        ("/v2/trace/setting", b'{"trace_rate": "99999999999"}', 400, "trace_rate"),
        ("/v2/logging", b'{"log_info": []}', 400, "log_info is a list"),
        ("/v2/logging", b'{"log_file": "/etc/passwd"}', 400, "cannot be set"),
        ("/v2/systemsharedmemory/region/a/register", b"{}", 400, "'key' is missing"),
    ],
)
def test_what_changes_the_server(server: Process, path: str, body: bytes, status: int, reason: str) -> None:
    found, answer = ask(server, request(path, body))
    assert (found, reason in answer.get("error", "")) == (status, True), answer


@pytest.mark.parametrize(
    "path",
    [
        "/v2/repository/models/plain/unload",
        "/v2/repository/models/plain/load",
        "/v2/systemsharedmemory/region/a/register",
        "/v2/systemsharedmemory/unregister",
        "/v2/logging",
        "/v2/trace/setting",
    ],
)
def test_pages_in_browsers_change_nothing(server: Process, path: str) -> None:
    headers = "Origin: https://elsewhere.example\r\nContent-Type: text/plain\r\n"
    refused(server, request(path, b"{}", headers=headers), 403, "pages in browsers")


# Shared memory


def test_shared_memory_that_is_none(server: Process, tmp_path: Path) -> None:
    """Keys that lead elsewhere, links, devices, pipes, folders, memory that is cut short, offsets that overflow."""

    places = Path("/dev/shm")
    mark = f"tract-hostile-{os.getpid()}"
    link, pipe, folder, real = (places / f"{mark}-{kind}" for kind in ("link", "pipe", "folder", "real"))
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(64))
    try:
        link.symlink_to(secret)
        os.mkfifo(pipe)
        folder.mkdir()
        real.write_bytes(bytes(64))
        keys = ["", "/", "..", ".", "../etc/passwd", "/../etc/passwd", "a/b", "//a", "a\x00b", "x" * 300, "sem.x", "é"]
        keys += [link.name, pipe.name, folder.name, "none-of-this"]
        path = "/v2/systemsharedmemory/region/bad/register"
        for key in keys:
            body = json.dumps({"key": key, "offset": 0, "byte_size": 12}).encode()
            refused(server, request(path, body), 400, "region 'bad'")
        for offset, size in ((0, 0), (0, 65), (60, 5), (1 << 62, 12), ((1 << 63) - 1, (1 << 63) - 1), (-1, 12)):
            body = json.dumps({"key": real.name, "offset": offset, "byte_size": size}).encode()
            refused(server, request(path, body), 400, "")
        good = "/v2/systemsharedmemory/region/good/register"
        body = json.dumps({"key": real.name, "offset": 0, "byte_size": 64}).encode()
        assert ask(server, request(good, body))[0] == 200
        for offset, size in ((60, 12), ((1 << 63) - 1, 12), (0, 1 << 62)):
            told = shared(size, offset, "good")
            refused(server, request(INFER, asked(data=None, parameters=told)), 400, "no part of its 64")
        os.truncate(real, 4)
        told = shared(region="good")
        refused(server, request(INFER, asked(data=None, parameters=told)), 400, "smaller than it was")
        output = said(outputs=[{"name": "y", "parameters": told}])
        refused(server, request(INFER, output), 400, "smaller than it was")
        refused(server, request(INFER, output.replace(b": 12", b": 11")), 400, "11 are left for it")
        assert ask(server, request("/v2/systemsharedmemory/unregister"))[0] == 200
    finally:
        for path in (link, pipe, real):
            path.unlink(missing_ok=True)
        folder.rmdir()


def test_many_regions(server: Process) -> None:
    body = json.dumps({"key": "none", "offset": 0, "byte_size": 12}).encode()
    for number in range(50):
        refused(server, request(f"/v2/systemsharedmemory/region/r{number}/register", body), 400, "cannot be opened")
