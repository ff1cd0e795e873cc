"""Clients over gRPC that send what they should not, or do not take what they are sent.

Each gets the right status and a reason. After each, another client still gets right answers; in the end the server, a
process of its own, has logged no failure, and holds little more memory than in the beginning.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
from hostile import LIMITS, models, watched
from servers import Process, Running, serving
from tritonclient.grpc import service_pb2, service_pb2_grpc

Code = grpc.StatusCode

SERVICE = "/inference.GRPCInferenceService/"


def good(number: float = 1.0) -> Any:
    asked = service_pb2.ModelInferRequest(model_name="plain", id=str(number))
    asked.inputs.add(name="x", datatype="FP32", shape=[1, 3])
    asked.raw_input_contents.append(np.full(3, number, np.float32).tobytes())
    return asked


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with watched(tmp_path_factory.mktemp("models")) as running:
        yield running


@pytest.fixture(scope="module")
def channel(server: Process) -> Iterator[Any]:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(server.grpc, options=options) as made:
        yield made


@pytest.fixture(scope="module")
def stub(channel: Any) -> Any:
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


@pytest.fixture(autouse=True)
def nothing_is_disturbed(stub: Any) -> Iterator[None]:
    yield
    begun = time.monotonic()
    answer = stub.ModelInfer(good(7.5))
    assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [7.5] * 3
    assert time.monotonic() - begun < 5


def refused(call: Any, code: Any, reason: str) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert (caught.value.code(), reason in caught.value.details()) == (code, True), caught.value
    return caught.value.details()


def raw_call(channel: Any, method: str, content: bytes, **given: Any) -> Any:
    return channel.unary_unary(SERVICE + method)(content, **given)


# Messages


def number(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def part(field: int, content: bytes, length: int | None = None) -> bytes:
    """A field of bytes, whose length may lie."""
    return number(field << 3 | 2) + number(len(content) if length is None else length) + content


LONG = part(1, b"plain") + part(3, b"i" * (2 << 20))
_TEXTS = part(1, b"x") + part(2, b"BYTES") + part(3, b"\x01" + number(250_000)) + part(5, b"\x42\x00" * 250_000)
EMPTY_TEXTS = part(1, b"texts") + part(5, _TEXTS) + part(6, part(1, b"no"))

MESSAGES: dict[str, tuple[bytes, Any, str]] = {
    "nothing": (b"", Code.NOT_FOUND, "there is no model ''"),
    "garbage": (bytes(range(1, 255)), Code.INVALID_ARGUMENT, "no message of the protocol"),
    "zeros": (bytes(100), Code.INVALID_ARGUMENT, "no message of the protocol"),
    "text": (b"GET / HTTP/1.1\r\n\r\n", Code.INVALID_ARGUMENT, "no message of the protocol"),
    "a length beyond the end": (part(1, b"plain", 100), Code.INVALID_ARGUMENT, "no message of the protocol"),
    "a huge length": (part(1, b"plain", (1 << 63) - 1), Code.INVALID_ARGUMENT, "no message of the protocol"),
    "a number without end": (b"\x08" + b"\xff" * 40, Code.INVALID_ARGUMENT, "no message of the protocol"),
    "text that is no Unicode": (part(1, b"\xff\xfe"), Code.INVALID_ARGUMENT, "no message of the protocol"),
    "nested groups": (b"\x0b" * 200_000, Code.INVALID_ARGUMENT, "no message of the protocol"),
    "many small parts": (b"\x2a\x00" * 100_000, Code.RESOURCE_EXHAUSTED, "more than 10000 parts"),
    "many raw parts": (b"\x3a\x00" * 100_000, Code.RESOURCE_EXHAUSTED, "more than 10000 parts"),
    "a long name": (part(1, b"n" * 100_000), Code.NOT_FOUND, "there is no model 'nnn"),
    "a name that steers": (part(1, b"\x1b[2J\r\n\xe2\x80\xae"), Code.NOT_FOUND, "\\x1b[2J\\r\\n\\u202e"),
    "too much besides raw contents": (LONG, Code.RESOURCE_EXHAUSTED, "raw_input_contents"),
    "elements of BYTES that are empty": (EMPTY_TEXTS, Code.INVALID_ARGUMENT, "there is no output 'no'"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(channel: Any, name: str) -> None:
    content, code, reason = MESSAGES[name]
    details = refused(lambda: raw_call(channel, "ModelInfer", content), code, reason)
    assert len(details) <= 1000


@pytest.mark.parametrize(
    "name", sorted(service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name)
)
def test_garbage_for_every_call(channel: Any, name: str) -> None:
    if name in ("ModelStreamInfer",):
        answers = channel.stream_stream(SERVICE + name)(iter([b"\xff" * 50]))
        told = service_pb2.ModelStreamInferResponse.FromString(next(answers))
        assert "no message of the protocol" in told.error_message
        return
    refused(lambda: raw_call(channel, name, b"\xff" * 50), Code.INVALID_ARGUMENT, "no message of the protocol")


def test_long_requests_that_are_none_for_a_run(channel: Any) -> None:
    refused(
        lambda: raw_call(channel, "ModelReady", part(1, b"n" * (3 << 20))), Code.RESOURCE_EXHAUSTED, "at most 2097152"
    )


def test_a_message_that_is_too_long(channel: Any) -> None:
    content = part(1, b"plain") + part(7, bytes(5 << 20))
    refused(lambda: raw_call(channel, "ModelInfer", content), Code.RESOURCE_EXHAUSTED, "larger than max")


@pytest.mark.parametrize("packing", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_bomb(server: Process, packing: Any) -> None:
    options = [("grpc.max_send_message_length", -1)]
    before = server.memory
    with grpc.insecure_channel(server.grpc, options=options, compression=packing) as channel:
        content = part(1, b"plain") + part(7, bytes(30 << 20))
        refused(lambda: raw_call(channel, "ModelInfer", content), Code.RESOURCE_EXHAUSTED, "")
    assert server.memory - before < 80 << 20


def test_no_message_and_two(channel: Any) -> None:
    call = channel.stream_unary(SERVICE + "ModelInfer")
    refused(lambda: call(iter([])), Code.INVALID_ARGUMENT, "the call has no request")
    call(iter([good().SerializeToString()] * 2))


@pytest.mark.parametrize("method", ["/inference.GRPCInferenceService/Nothing", "/none.None/None", "/", "/x"])
def test_methods_that_are_not_there(channel: Any, method: str) -> None:
    refused(lambda: channel.unary_unary(method)(b""), Code.UNIMPLEMENTED, "")


# Tensors


def changed(**fields: Any) -> Any:
    asked = good()
    for name, value in fields.items():
        if name == "shape":
            asked.inputs[0].shape[:] = value
        elif name == "raw":
            asked.raw_input_contents[:] = value
        else:
            setattr(asked.inputs[0], name, value)
    return asked


TENSORS: dict[str, tuple[Any, str]] = {
    "no type": (changed(datatype=""), "datatype is '', wanted one of BOOL"),
    "a type that is none": (changed(datatype="F" * 10_000), "wanted one of BOOL"),
    "another type": (changed(datatype="INT32"), "datatype is INT32, wanted FP32"),
    "no name": (changed(name=""), "missing: x"),
    "another name": (changed(name="\n" * 10_000), "missing: x"),
    "a negative size": (changed(shape=[-1, 3]), "shape has -1"),
    "a huge size": (changed(shape=[(1 << 63) - 1, (1 << 63) - 1]), "more elements than there is memory"),
    "huge sizes beside 0": (changed(shape=[0, 1 << 62, 1 << 62], raw=[b""]), "more elements than there is memory"),
    "too many axes": (changed(shape=[1] * 65), "at most 64"),
    "100,000 axes": (changed(shape=[1] * 100_000), "at most 64"),
    "axes that the model has not": (changed(shape=[1, 1, 3]), "shape is [1, 1, 3], wanted [-1, -1]"),
    "too few bytes": (changed(raw=[bytes(11)]), "11 bytes came, wanted 12"),
    "too many bytes": (changed(raw=[bytes(13)]), "13 bytes came, wanted 12"),
    "no contents": (changed(raw=[]), "fp32_contents has 0 elements, wanted 3"),
    "more contents than inputs": (changed(raw=[bytes(12), bytes(12)]), "has 2 parts, wanted 1"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors(stub: Any, name: str) -> None:
    asked, reason = TENSORS[name]
    refused(lambda: stub.ModelInfer(asked), Code.INVALID_ARGUMENT, reason)


def test_inputs_and_outputs_twice(stub: Any) -> None:
    asked = good()
    asked.inputs.append(asked.inputs[0])
    asked.raw_input_contents.append(bytes(12))
    refused(lambda: stub.ModelInfer(asked), Code.INVALID_ARGUMENT, "it comes twice")
    asked = good()
    asked.outputs.add(name="y")
    asked.outputs.add(name="y")
    refused(lambda: stub.ModelInfer(asked), Code.INVALID_ARGUMENT, "asked for twice")
    asked = service_pb2.ModelInferRequest(model_name="two")
    for name in "ab":
        asked.inputs.add(name=name, datatype="FP32", shape=[1, 4])
    asked.raw_input_contents.append(bytes(16))
    refused(lambda: stub.ModelInfer(asked), Code.INVALID_ARGUMENT, "none is left for it")


def test_both_kinds_of_contents(stub: Any) -> None:
    asked = good()
    asked.inputs[0].contents.fp32_contents.extend([1, 2, 3])
    refused(lambda: stub.ModelInfer(asked), Code.INVALID_ARGUMENT, "it has contents")


@pytest.mark.parametrize(
    ("name", "field", "value", "reason"),
    [
        ("priority", "string_param", "high", "priority"),
        ("priority", "int64_param", -1, "priority"),
        ("timeout", "double_param", float("nan"), "timeout"),
        ("timeout", "bool_param", True, "timeout"),
    ],
)
def test_parameters(stub: Any, name: str, field: str, value: Any, reason: str) -> None:
    asked = good()
    setattr(asked.parameters[name], field, value)
    refused(lambda: stub.ModelInfer(asked), Code.INVALID_ARGUMENT, reason)


def test_shared_memory_that_is_none(stub: Any) -> None:
    for key in ("", "..", "/../etc/passwd", "a/b", "none-of-this"):
        asked = service_pb2.SystemSharedMemoryRegisterRequest(name="bad", key=key, byte_size=12)
        refused(lambda asked=asked: stub.SystemSharedMemoryRegister(asked), Code.INVALID_ARGUMENT, "region 'bad'")
    for offset, size in (((1 << 64) - 1, 12), (0, 0), (1 << 63, (1 << 64) - 1)):
        asked = service_pb2.SystemSharedMemoryRegisterRequest(name="bad", key="/a", offset=offset, byte_size=size)
        refused(lambda asked=asked: stub.SystemSharedMemoryRegister(asked), Code.INVALID_ARGUMENT, "region 'bad'")
    asked = changed(raw=[])
    asked.inputs[0].parameters["shared_memory_region"].string_param = "none"
    refused(lambda: stub.ModelInfer(asked), Code.INVALID_ARGUMENT, "go together")
    asked.inputs[0].parameters["shared_memory_byte_size"].int64_param = 12
    refused(lambda: stub.ModelInfer(asked), Code.NOT_FOUND, "no region 'none'")


@pytest.mark.parametrize("name", ["..", "../../etc", "/etc/passwd", "plain/1", "plain\x00", "."])
def test_models_outside_the_repository_are_not_loaded(stub: Any, name: str) -> None:
    asked = service_pb2.RepositoryModelLoadRequest(model_name=name)
    refused(lambda: stub.RepositoryModelLoad(asked), Code.NOT_FOUND, "there is no model")


def test_a_configuration_that_is_none(stub: Any) -> None:
    asked = service_pb2.RepositoryModelLoadRequest(model_name="plain")
    for text in ("{", '{"a":' * 5000, "x: y: z", '{"parameters": {"nothing": {"string_value": "1"}}}'):
        asked.parameters["config"].string_param = text
        refused(lambda: stub.RepositoryModelLoad(asked), Code.INVALID_ARGUMENT, "")


def test_metadata_that_is_too_long(channel: Any) -> None:
    metadata = [("x", "a" * 30_000)]
    with pytest.raises(grpc.RpcError) as caught:
        raw_call(channel, "ServerLive", b"", metadata=metadata)
    assert caught.value.code() in (Code.RESOURCE_EXHAUSTED, Code.INTERNAL, Code.UNAVAILABLE)


# Calls and streams


def test_calls_that_end_before_they_are_answered(stub: Any) -> None:
    asked = service_pb2.ModelInferRequest(model_name="slow")
    asked.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    asked.inputs.add(name="turns", datatype="INT64", shape=[])
    asked.raw_input_contents.extend([bytes(16), np.int64(3_000_000).tobytes()])
    begun = time.monotonic()
    stub.ModelInfer(asked)
    alone = time.monotonic() - begun
    calls = [stub.ModelInfer.future(asked) for _ in range(12)]
    time.sleep(alone / 4)
    for call in calls:
        call.cancel()
    refused(lambda: stub.ModelInfer(asked, timeout=0.001), Code.DEADLINE_EXCEEDED, "")
    asked.raw_input_contents[1] = np.int64(1).tobytes()
    begun = time.monotonic()
    stub.ModelInfer(asked)
    assert time.monotonic() - begun < 6 * alone + 0.5, "calls that had ended were run"


def test_streams_that_are_too_many(stub: Any) -> None:
    ends = threading.Event()

    def waits() -> Iterator[Any]:
        yield good()
        ends.wait(10)

    streams = [stub.ModelStreamInfer(waits()) for _ in range(5)]
    for one in streams:
        next(one)
    refused(lambda: next(stub.ModelStreamInfer(waits())), Code.UNAVAILABLE, "5 streams are open")
    ends.set()
    for one in streams:
        assert list(one) == []
    until = time.monotonic() + 5
    again = None
    while again is None and time.monotonic() < until:
        with contextlib.suppress(grpc.RpcError):
            again = next(stub.ModelStreamInfer(iter([good()])))
        time.sleep(0.05)
    assert again is not None, "streams that had ended were counted"
    assert again.infer_response.id == "1.0"


def test_a_stream_that_is_silent(stub: Any) -> None:
    def waits() -> Iterator[Any]:
        yield good()
        time.sleep(5)

    stream = stub.ModelStreamInfer(waits())
    next(stream)
    begun = time.monotonic()
    refused(lambda: next(stream), Code.DEADLINE_EXCEEDED, "the stream was silent for 2 seconds")
    assert time.monotonic() - begun < 4.5


def test_a_stream_of_bad_and_good(stub: Any) -> None:
    requests = [good(1), changed(shape=[-1]), good(2), service_pb2.ModelInferRequest(), good(3)]
    answers = list(stub.ModelStreamInfer(iter(requests)))
    assert [one.error_message.partition(":")[0] for one in answers] == [
        "",
        "input 'x'",
        "",
        "there is no model ''; models",
        "",
    ]
    assert [one.infer_response.id for one in answers] == ["1", "1.0", "2", "", "3"]


def test_streams_that_are_left(stub: Any) -> None:
    for _ in range(20):
        stream = stub.ModelStreamInfer(iter([good()] * 5))
        next(stream)
        stream.cancel()
    time.sleep(0.3)
    assert len(list(stub.ModelStreamInfer(iter([good()])))) == 1


def test_many_calls_at_once(channel: Any, stub: Any) -> None:
    calls = [stub.ModelInfer.future(good(float(value))) for value in range(400)]
    codes = [one.exception() for one in calls]
    done = [one for one, error in zip(calls, codes, strict=True) if error is None]
    assert {error.code() for error in codes if error is not None} <= {Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}
    assert len(done) >= 60
    for one in done:
        answer = one.result()
        assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [float(answer.id)] * 3


# Connections: frames of HTTP/2 (RFC 9113), headers without compression (RFC 7541, 6.2.2)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def headers(method: str = "ModelInfer") -> bytes:
    lines = {
        ":method": "POST",
        ":scheme": "http",
        ":path": SERVICE + method,
        ":authority": "here",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    text = [value.encode() for pair in lines.items() for value in pair]
    return b"".join(
        b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
        for name, value in zip(text[::2], text[1::2], strict=True)
    )


def connected(server: Any) -> socket.socket:
    host, _, port = server.grpc.partition(":")
    return socket.create_connection((host, int(port)), timeout=15)


def sent(connection: socket.socket, content: bytes) -> bytes:
    """What comes back until the other side ends, or is silent."""
    data = b""
    try:
        connection.sendall(content)
        while part_ := connection.recv(1 << 16):
            data += part_
    except OSError:
        pass
    return data


BEGUN = PREFACE + frame(SETTINGS, 0, 0)
ENDLESS = frame(HEADERS, 0, 1, headers()) + frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 3000) * 20

GARBAGE: dict[str, bytes] = {
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "noise": bytes(range(256)) * 40,
    "a begin alone": PREFACE[:10],
    "noise behind the begin": PREFACE + b"\xff" * 500,
    "a huge frame": BEGUN + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(1000),
    "data without headers": BEGUN + frame(DATA, 1, 1, bytes(100)),
    "headers that are none": BEGUN + frame(HEADERS, 5, 1, b"\xff" * 100),
    "a stream of an even number": BEGUN + frame(HEADERS, 5, 2, headers()),
    "a setting that is none": PREFACE + frame(SETTINGS, 0, 0, b"\x00\x05\x00\x00\x00\x01"),
    "a window that overflows": BEGUN + frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 3,
    "many settings": PREFACE + frame(SETTINGS, 0, 0, b"\x00\x03\x00\x00\x00\x64") * 5000,
    "many pings": BEGUN + frame(PING, 0, 0, bytes(8)) * 5000,
    "headers without end": BEGUN + ENDLESS,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_for_a_connection(server: Process, name: str) -> None:
    with connected(server) as connection:
        connection.settimeout(0.5)
        sent(connection, GARBAGE[name])


def test_calls_that_are_reset_at_once(server: Process) -> None:
    """As CVE-2023-44487 has it."""
    with connected(server) as connection:
        connection.settimeout(0.5)
        content = PREFACE + frame(SETTINGS, 0, 0)
        for stream in range(1, 4001, 2):
            content += frame(HEADERS, 4, stream, headers()) + frame(RST, 0, stream, b"\x00\x00\x00\x08")
        sent(connection, content)


def test_a_message_that_stops_in_the_middle(server: Process) -> None:
    begun = time.monotonic()
    with connected(server) as connection:
        body = b"\x00" + (1000).to_bytes(4, "big") + bytes(10)
        content = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, headers()) + frame(DATA, 0, 1, body)
        connection.sendall(content)
        data = b""
        while b"did not come within" not in data and time.monotonic() - begun < 6:
            data += connection.recv(1 << 16)
    assert b"did not come within 1.5 seconds" in data


def test_messages_that_stop_hold_up_others_for_no_longer_than_that(server: Process) -> None:
    """Only so many are received at once; the next are when those have given up."""
    made = []
    for _ in range(40):
        connection = connected(server)
        body = b"\x00" + (3 << 20).to_bytes(4, "big") + bytes(10)
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, headers()) + frame(DATA, 0, 1, body))
        made.append(connection)
    time.sleep(0.2)
    begun = time.monotonic()
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        answer = None
        while answer is None and time.monotonic() - begun < 10:
            with contextlib.suppress(grpc.RpcError):
                answer = stub.ModelInfer(good())
    assert answer is not None
    for connection in made:
        connection.close()


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(models(tmp_path_factory.mktemp("models")), limits=LIMITS) as running:
        yield running


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
def test_an_answer_that_nobody_takes(inside: Running, method: str) -> None:
    """Its call is ended, and what it held is free again."""
    room = inside.server.serving.room
    asked = good()
    asked.inputs[0].shape[:] = [1, 900_000]
    asked.raw_input_contents[0] = bytes(3_600_000)
    body = asked.SerializeToString()
    content = b"\x00" + len(body).to_bytes(4, "big") + body
    with connected(inside) as connection:
        connection.settimeout(5)
        no_window = b"\x00\x04\x00\x00\x00\x00"
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0, no_window) + frame(HEADERS, 4, 1, headers(method)))
        reader = threading.Thread(target=sent, args=(connection, b""), daemon=True)
        reader.start()
        for begin in range(0, len(content), 16_384):
            connection.sendall(frame(DATA, 0, 1, content[begin : begin + 16_384]))
            time.sleep(0.0005)  # as the window opens, of which this client reads nothing
        until = time.monotonic() + 10
        seen = 0
        while time.monotonic() < until and not (seen and not room.taken):
            seen = max(seen, room.taken)
            time.sleep(0.01)
        assert seen > 3_600_000
        assert room.taken == 0


def test_nothing_is_held_when_all_is_over(inside: Running) -> None:
    with grpc.insecure_channel(inside.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for asked in (good(), changed(shape=[-1]), changed(raw=[])):
            with contextlib.suppress(grpc.RpcError):
                stub.ModelInfer(asked)
        list(stub.ModelStreamInfer(iter([good(), changed(raw=[])])))
        stub.ModelInfer.future(good()).cancel()
    until = time.monotonic() + 5
    while time.monotonic() < until and inside.server.serving.room.taken:
        time.sleep(0.01)
    assert inside.server.serving.room.taken == 0
