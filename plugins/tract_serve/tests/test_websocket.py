"""Streams over WebSockets: as the whole run, several at once, with limits, for whom they are meant."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sequence_models import PULSE, cut, pulsed, put_models, recurrent, signal, smoothing, steps, streamed, with_gain
from servers import Running, serving
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus
from websockets.sync.client import ClientConnection, connect

pytestmark = pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(put_models(tmp_path_factory.mktemp("models")), grpc_port=None) as running:
        yield running


def opened(server: Running, model: str = "smoothing", **options: Any) -> ClientConnection:
    return connect(f"ws://{server.http}/v2/models/{model}/stream", **options)


def begun(socket: ClientConnection, **hello: Any) -> dict[str, Any]:
    """The answer of the server to the first message."""
    socket.send(json.dumps(hello))
    return json.loads(socket.recv(timeout=10))


def rest_of(socket: ClientConnection) -> tuple[bytes, dict[str, Any]]:
    """All frames until the message of the end, laid one behind the other, and that message."""
    found = list[bytes]()
    while isinstance(message := socket.recv(timeout=10), bytes):
        found.append(message)
    return b"".join(found), json.loads(message)


def as_signal(content: bytes, kind: Any = np.float32) -> Any:
    return np.frombuffer(content, kind).reshape(-1)


def frames_of(x: Any, *sizes: int) -> list[bytes]:
    return [piece.tobytes() for piece in cut(x, *sizes)]


def laid(contents: list[bytes]) -> Any:
    """Frames of two channels, each [1, 2, n]."""
    return np.concatenate([np.frombuffer(one, np.float32).reshape(1, 2, -1) for one in contents], 2)


def run(server: Running, x: Any, *sizes: int, **hello: Any) -> tuple[Any, dict[str, Any]]:
    """What a signal gives that comes in frames of these sizes, and the last message."""
    with opened(server) as socket:
        begun(socket, **hello)
        for frame in frames_of(x, *sizes):
            socket.send(frame)
        socket.send('{"end": true}')
        found = list[bytes]()
        while isinstance(message := socket.recv(timeout=10), bytes):
            found.append(message)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1000
    return laid(found), json.loads(message)


# As the whole run


@pytest.mark.parametrize("sizes", [(3,), (8,), (50,), (1, 0, 20)], ids=str)
def test_what_comes_is_the_whole_run_bit_for_bit(server: Running, sizes: tuple[int, ...]) -> None:
    x = signal(61)
    found, last = run(server, x, *sizes)
    np.testing.assert_array_equal(found, streamed(smoothing(), x))
    assert last == {"end": True, "received_bytes": x.nbytes, "sent_bytes": x.nbytes}


def test_the_first_answer_says_what_is_taken(server: Running) -> None:
    with opened(server) as socket:
        told = begun(socket)
    name = told.pop("parameters")["sequence_id"]
    assert name.startswith("stream ")
    shape = {"datatype": "FP32", "shape": [1, 2, -1], "axis": 2}
    assert told == {
        "model_name": "smoothing",
        "model_version": "1",
        "frames": "samples",
        "input": {"name": "x", **shape},
        "output": {"name": "y", **shape},
    }


def test_output_comes_as_soon_as_it_is_known(server: Running) -> None:
    x = signal(PULSE * 2)
    with opened(server) as socket:
        begun(socket)
        socket.send(x[..., :PULSE].tobytes())
        first = laid([socket.recv(timeout=10)])  # pyright: ignore[reportArgumentType]: a frame of bytes
        assert first.shape == (1, 2, PULSE - 3)


def test_several_streams_at_once(server: Running) -> None:
    def one(seed: int) -> bool:
        x = signal(100 + seed, seed)
        return np.array_equal(run(server, x, 7 + seed)[0], streamed(smoothing(), x))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(one, range(12)))


def test_many_frames_at_once_wait_in_the_connection(server: Running) -> None:
    """A client that sends without reading: nothing is lost, and what is not read yet is not taken in."""
    x = signal(40_000)
    found, _ = run(server, x, 13)
    np.testing.assert_array_equal(found, streamed(smoothing(), x))


def test_sound_of_16_bits(server: Running) -> None:
    x = np.clip(signal(40) * 0.1, -0.9, 0.9)
    short = np.rint(x * 32768).astype(np.int16)
    with opened(server) as socket:
        told = begun(socket, datatype="INT16")
        assert told["input"]["datatype"] == told["output"]["datatype"] == "INT16"
        for piece in cut(short, 11):
            socket.send(piece.tobytes())
        socket.send('{"end": true}')
        contents = list[bytes]()
        while isinstance(message := socket.recv(timeout=10), bytes):
            contents.append(message)
    found = np.concatenate([np.frombuffer(one, np.int16).reshape(1, 2, -1) for one in contents], 2)
    wanted = streamed(smoothing(), short.astype(np.float32) / 32768)
    np.testing.assert_array_equal(found, np.clip(np.rint(wanted * 32768), -32768, 32767).astype(np.int16))


def test_an_end_without_frames(server: Running) -> None:
    with opened(server) as socket:
        begun(socket)
        socket.send('{"end": true}')
        assert rest_of(socket) == (b"", {"end": True, "received_bytes": 0, "sent_bytes": 0})


# Tensors


def framed(head: dict[str, Any], *arrays: Any) -> bytes:
    text = json.dumps(head).encode()
    return b"".join([len(text).to_bytes(4, "little"), text, *(array.tobytes() for array in arrays)])


def tensors_frame(given: dict[str, Any], **parameters: Any) -> bytes:
    told = [
        {
            "name": name,
            "datatype": "FP32",
            "shape": list(array.shape),
            "parameters": {"binary_data_size": array.nbytes},
        }
        for name, array in given.items()
    ]
    asked = {"inputs": told, "parameters": {"binary_data_output": True, **parameters}}
    return framed(asked, *given.values())


def unframed(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON of an answer, and its outputs by name."""
    size = int.from_bytes(content[:4], "little")
    head, at, found = json.loads(content[4 : 4 + size]), 4 + size, dict[str, Any]()
    for one in head.get("outputs", []):
        count = one["parameters"]["binary_data_size"]
        found[one["name"]] = np.frombuffer(content[at : at + count], np.float32).reshape(one["shape"])
        at += count
    assert at == len(content)
    return head, found


def test_tensors_of_several_inputs_and_outputs(server: Running) -> None:
    x = np.random.default_rng(0).normal(size=(1, 30)).astype(np.float32)
    gain = np.full((1, 1), 2, np.float32)
    with opened(server, "gain") as socket:
        assert begun(socket, frames="tensors", parameters={"stream": True})["frames"] == "tensors"
        found = list[Any]()
        for piece in cut(x, 11):
            socket.send(tensors_frame({"x": piece, "gain": gain}))
            found.append(unframed(socket.recv(timeout=10))[1]["y"])  # pyright: ignore[reportArgumentType]: bytes
        socket.send('{"end": true}')
        rest, _ = rest_of(socket)
        outputs = unframed(rest)[1]
    assert outputs["twice"].tolist() == [[4.0]]
    whole = [np.asarray(one[0]) for one in pulsed(with_gain()).stream([x], {"gain": gain})]
    np.testing.assert_array_equal(np.concatenate([*found, outputs["y"]], 1), np.concatenate(whole, 1))


def test_recurrent_networks_step_by_step(server: Running) -> None:
    """A request that is not done is told in its place, and the stream goes on."""
    rows = [np.random.default_rng(turn).normal(size=(1, 3)).astype(np.float32) for turn in range(4)]
    with opened(server, "recurrent") as socket:
        begun(socket, frames="tensors")
        found = list[Any]()
        for turn, row in enumerate(rows):
            socket.send(tensors_frame({"x": row}))
            found.append(unframed(socket.recv(timeout=10))[1]["y"])  # pyright: ignore[reportArgumentType]: bytes
            if turn == 1:
                socket.send(tensors_frame({"z": row}))
                told = unframed(socket.recv(timeout=10))[0]  # pyright: ignore[reportArgumentType]: bytes
                assert told["status"] == 400
                assert "unknown: z" in told["error"]
                socket.send(framed({"inputs": 3}))
                assert "error" in unframed(socket.recv(timeout=10))[0]  # pyright: ignore[reportArgumentType]: bytes
        socket.send('{"end": true}')
        assert rest_of(socket)[0] == b""
    np.testing.assert_array_equal(np.stack(found), np.stack(steps(recurrent(), rows)))


def test_a_stream_with_a_name_goes_on_later(server: Running) -> None:
    x = signal(45)
    with opened(server) as socket:
        begun(socket, parameters={"sequence_id": "mine"})
        socket.send(x[..., :20].tobytes())
        found = [socket.recv(timeout=10)]
    with opened(server) as socket:
        begun(socket, parameters={"sequence_id": "mine", "sequence_start": False})
        socket.send(x[..., 20:].tobytes())
        socket.send('{"end": true}')
        while isinstance(message := socket.recv(timeout=10), bytes):
            found.append(message)
    np.testing.assert_array_equal(laid(found), streamed(smoothing(), x))  # pyright: ignore[reportArgumentType]: bytes


def test_a_stream_without_a_name_leaves_nothing_behind(server: Running) -> None:
    table: Any = server.server.serving.tensors("smoothing").sequences  # pyright: ignore[reportAttributeAccessIssue]
    before = len(table)
    with opened(server) as socket:
        begun(socket)
        socket.send(signal(20).tobytes())
        socket.recv(timeout=10)
        assert len(table) == before + 1
        socket.socket.close()  # as when a cable is pulled
    until = time.monotonic() + 10
    while len(table) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(table) == before


# Refused


def refusal(socket: ClientConnection) -> tuple[dict[str, Any], int]:
    """What is told, and the code of the close."""
    with socket:
        told = json.loads(socket.recv(timeout=10))
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(timeout=10)
    assert closed.value.rcvd is not None
    return told, closed.value.rcvd.code


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (b"bytes", "the first message is of bytes, wanted JSON"),
        ("[]", "no object of JSON"),
        ("{", "no object of JSON"),
        ("{}" + " " * 70_000, "no object of JSON, or has more than 65536 characters"),
        ('{"frames": "pictures"}', "frames is 'pictures', wanted samples or tensors"),
        ('{"datatype": "INT8"}', "datatype is 'INT8', wanted FP32"),
        ('{"parameters": []}', "'parameters' is a list, wanted an object"),
        ('{"parameters": {"sequence_id": -4}}', "sequence_id is"),
        ("[" * 200_000, "no object of JSON"),
    ],
    ids=range(9),
)
def test_first_messages_that_are_none(server: Running, first: Any, problem: str) -> None:
    socket = opened(server)
    socket.send(first)
    told, code = refusal(socket)
    assert problem in told["error"]
    assert (told["status"], code) == (400, 1007)


def test_models_that_take_no_samples(server: Running) -> None:
    for model, problem in (
        ("recurrent", "the model takes no stream of samples"),
        ("gain", "samples are of one input that streams, and the model has x, gain"),
        ("nothing", "there is no model"),
    ):
        socket = opened(server, model)
        socket.send("{}")
        assert problem in refusal(socket)[0]["error"]


@pytest.mark.parametrize(
    ("frame", "problem"), [(b"12345", "a frame has 5 bytes, wanted a multiple of 8"), ('{"end": 1}', "wanted")]
)
def test_frames_that_are_none(server: Running, frame: Any, problem: str) -> None:
    socket = opened(server)
    begun(socket)
    socket.send(frame)
    assert problem in refusal(socket)[0]["error"]
    socket = opened(server)
    begun(socket, frames="tensors")
    socket.send(b"\xff\xff\xff\xff{}")
    assert "a frame has 6 bytes, wanted 4 of the length" in refusal(socket)[0]["error"]


def test_paths_that_are_none(server: Running) -> None:
    for path in ("/", "/v2/models/smoothing", "/v2/models/a/b/stream"):
        with pytest.raises(InvalidStatus) as caught:
            connect(f"ws://{server.http}{path}")
        assert caught.value.response.status_code == 404
        assert b"there is nothing at" in (caught.value.response.body or b"")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = {"idle_s": 0.5, "read_s": 0.3, "body_bytes": 100_000, "sequences": 2}
    settings: dict[str, Any] = {"tokens": ("secret", "other"), "origins": ("https://pages.example",)}
    with serving(put_models(tmp_path_factory.mktemp("models")), grpc_port=None, limits=limits, **settings) as running:
        yield running


def test_tokens(strict: Running) -> None:
    address = f"ws://{strict.http}/v2/models/smoothing/stream"
    for options in ({"additional_headers": {"Authorization": "Bearer secret"}}, {"query": "?token=other"}):
        query = options.pop("query", "")
        with connect(address + str(query), **options) as socket:  # pyright: ignore[reportArgumentType]: as above
            assert "model_name" in begun(socket)
    with connect(address) as socket:
        assert "model_name" in begun(socket, token="secret")
    for query in ("?token=wrong", "?token=secre%00t"):
        with pytest.raises(InvalidStatus) as caught:
            connect(address + query)
        assert caught.value.response.status_code == 401
    for hello in ({}, {"token": "wrong"}, {"token": 7}):
        socket = connect(address)
        socket.send(json.dumps(hello))
        told, code = refusal(socket)
        assert (told["status"], code) == (401, 1008)


@pytest.mark.parametrize(
    ("headers", "is_taken"),
    [
        ({}, True),
        ({"Origin": "http://{host}"}, True),
        ({"Origin": "https://pages.example"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://{host}.evil.example"}, False),
        ({"Origin": "http://evil.example", "Host": "evil.example"}, False),
        ({"Origin": "http://localhost:1"}, False),
    ],
    ids=str,
)
def test_pages_from_elsewhere(strict: Running, headers: dict[str, str], is_taken: bool) -> None:
    from tract_serve.errors import Forbidden
    from tract_serve.http.websocket import check_origin

    given = {"Host": "{host}", **headers}
    raw = {name.lower().encode(): value.format(host=strict.http).encode() for name, value in given.items()}
    settings = strict.server.settings
    if is_taken:
        check_origin(settings, raw)
    else:
        with pytest.raises(Forbidden, match="may not open a WebSocket here"):
            check_origin(settings, raw)
    if "Host" in headers:
        return  # clients of tests send their own
    options = {"origin": headers["Origin"].format(host=strict.http)} if headers else {}
    address = f"ws://{strict.http}/v2/models/smoothing/stream?token=secret"
    if is_taken:
        with connect(address, **options) as socket:  # pyright: ignore[reportArgumentType]: a text
            assert "model_name" in begun(socket)
    else:
        with pytest.raises(InvalidStatus) as caught:
            connect(address, **options)  # pyright: ignore[reportArgumentType]: a text
        assert caught.value.response.status_code == 403


def test_clients_that_say_nothing(strict: Running) -> None:
    address = f"ws://{strict.http}/v2/models/smoothing/stream?token=secret"
    told, code = refusal(connect(address))
    assert (told["status"], code) == (408, 1008)
    assert "nothing came for 0.3 seconds" in told["error"]
    socket = connect(address)
    begun(socket)
    told, _ = refusal(socket)
    assert "nothing came for 0.5 seconds" in told["error"]


def test_frames_that_are_too_large(strict: Running) -> None:
    with connect(f"ws://{strict.http}/v2/models/smoothing/stream?token=secret") as socket:
        begun(socket)
        socket.send(bytes(100_008))
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(timeout=10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


def test_streams_are_bounded_in_number(strict: Running) -> None:
    address, sockets = f"ws://{strict.http}/v2/models/smoothing/stream?token=secret", list[ClientConnection]()
    try:
        for number in range(3):
            socket = connect(address)
            sockets.append(socket)
            begun(socket)
            socket.send(signal(PULSE).tobytes())
            if number < 2:
                socket.recv(timeout=10)
        told, code = refusal(sockets.pop())
        assert (told["status"], code) == (503, 1013)
        assert "2 sequences are kept" in told["error"]
    finally:
        for socket in sockets:
            socket.close()


def test_a_reload_of_the_same_model_is_not_noticed(server: Running) -> None:
    x = signal(50)
    with opened(server) as socket:
        begun(socket)
        socket.send(x[..., :20].tobytes())
        found = [socket.recv(timeout=10)]
        server.call(server.server.serving.repository.load("smoothing"))
        socket.send(x[..., 20:].tobytes())
        socket.send('{"end": true}')
        while isinstance(message := socket.recv(timeout=10), bytes):
            found.append(message)
    np.testing.assert_array_equal(laid(found), streamed(smoothing(), x))  # pyright: ignore[reportArgumentType]: bytes
