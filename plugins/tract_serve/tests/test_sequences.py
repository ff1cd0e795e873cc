"""Sequences of the protocol, by Triton's clients over HTTP and gRPC: as the whole run, in order, bounded, refused."""

from __future__ import annotations

import asyncio
import queue
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from onnx import helper, numpy_helper
from sequence_models import (
    PULSE,
    STATE,
    cut,
    parameter,
    pulsed,
    put_models,
    recurrent,
    signal,
    smoothing,
    steps,
    streamed,
    tensors,
    with_gain,
)
from servers import Running, network, put, serving
from tract_serve.batching import lane
from tract_serve.models.served import Wish
from tract_serve.sequences import sequenced, table
from tritonclient.utils import InferenceServerException

import tract_core as tract

TURNS = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(put_models(tmp_path_factory.mktemp("models"))) as running:
        yield running


class Client:
    """Both protocols by the same words: ``infer`` gives the output of a request, ``told`` its parameters."""

    def __init__(self, server: Running, kind: str) -> None:
        self._module: Any = triton_http if kind == "http" else triton_grpc
        self._client = self._module.InferenceServerClient(server.http if kind == "http" else server.grpc)
        self._kind, self.told = kind, dict[str, Any]()

    def infer(self, model: str, given: dict[str, Any], output: str = "y", **asked: Any) -> Any:
        """The output. ``asked``: ``sequence_id`` and so on; others go as parameters."""
        more = {name: asked.pop(name) for name in [*asked] if not name.startswith("sequence_") or name.endswith("turn")}
        result = self._client.infer(model, tensors(self._module, given), parameters=more or None, **asked)
        response = result.get_response()
        if self._kind == "http":
            self.told = response.get("parameters", {})
        else:
            self.told = {
                name: getattr(one, one.WhichOneof("parameter_choice")) for name, one in response.parameters.items()
            }
        return result.as_numpy(output)


@pytest.fixture(params=["http", "grpc"])
def client(server: Running, request: pytest.FixtureRequest) -> Client:
    return Client(server, request.param)


def as_states(x: Any, *, ends: bool = True) -> list[Any]:
    """What a state gives, pulse by pulse; ``ends``: the last one is told to be the end."""
    state, pieces = pulsed(smoothing()).spawn_state(), cut(x, PULSE)
    found: list[Any] = []
    for turn, piece in enumerate(pieces):
        if ends and turn == len(pieces) - 1:
            state.end_of_stream(x.shape[2])
        found.append(np.array(state.run([piece])[0]))
    return found


# As the whole run


@pytest.mark.parametrize("ids", [(1, 2, 3), ("a", "b", "c"), (7, "7", 1 << 62)], ids=str)
def test_three_interleaved_sequences_are_whole_runs_bit_for_bit(client: Client, ids: tuple[Any, ...]) -> None:
    """One of pulses, one of chunks of any length, one of steps of a recurrent network, in turns."""
    pulses, chunks = signal(PULSE * TURNS, 3), signal(53, 4)
    pieces = cut(chunks, 5, 0, 20, 1)[: TURNS - 1]
    pieces.append(chunks[..., sum(one.shape[2] for one in pieces) :].copy())
    rows = [np.random.default_rng(turn).normal(size=(2, 3)).astype(np.float32) for turn in range(TURNS)]
    found: list[list[Any]] = [[], [], []]
    for turn in range(TURNS):
        marks = {"sequence_start": turn == 0, "sequence_end": turn == TURNS - 1}
        given = (("smoothing", cut(pulses, PULSE)[turn]), ("smoothing", pieces[turn]), ("recurrent", rows[turn]))
        for number, (model, x) in enumerate(given):
            more = {"stream": True} if number == 1 else {}
            found[number].append(client.infer(model, {"x": x}, sequence_id=ids[number], **marks, **more))
            assert client.told["sequence_turn"] == turn
    np.testing.assert_array_equal(np.stack(found[0]), np.stack(as_states(pulses)))
    np.testing.assert_array_equal(np.concatenate(found[1], 2), streamed(smoothing(), chunks))
    np.testing.assert_array_equal(np.stack(found[2]), np.stack(steps(recurrent(), rows)))


def test_three_interleaved_sequences_in_one_stream(server: Running) -> None:
    signals = {name: signal(30 + len(name), seed) for seed, name in enumerate(("a", "bb", "ccc"))}
    found: dict[str, list[Any]] = {name: [] for name in signals}
    answers: queue.Queue[Any] = queue.Queue()
    with triton_grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        chunks = {name: cut(x, 11) for name, x in signals.items()}
        for turn in range(3):
            for name, pieces in chunks.items():
                client.async_stream_infer(
                    "smoothing",
                    tensors(triton_grpc, {"x": pieces[turn]}),
                    sequence_id=name,
                    sequence_start=turn == 0,
                    sequence_end=turn == 2,
                    request_id=name,
                    parameters={"stream": True},
                )
        for _ in range(9):
            result, error = answers.get(timeout=30)
            assert error is None
            found[result.get_response().id].append(result.as_numpy("y"))
        client.stop_stream()
    for name, x in signals.items():
        np.testing.assert_array_equal(np.concatenate(found[name], 2), streamed(smoothing(), x))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 40])
def test_chunks_end_exactly_where_the_signal_does(client: Client, length: int) -> None:
    x = signal(length)
    found = [client.infer("smoothing", {"x": x[..., :4]}, sequence_id=5, sequence_start=True, stream=True)]
    found.append(client.infer("smoothing", {"x": x[..., 4:]}, sequence_id=5, sequence_end=True, stream=True))
    laid = np.concatenate(found, 2)
    assert laid.shape == (1, 2, length)
    np.testing.assert_array_equal(laid, streamed(smoothing(), x))


def test_a_chunk_without_a_sequence_is_a_whole_signal(client: Client) -> None:
    x = signal(21)
    np.testing.assert_array_equal(client.infer("smoothing", {"x": x}, stream=True), streamed(smoothing(), x))


def test_a_request_without_a_sequence_runs_on_a_fresh_state(client: Client) -> None:
    x = signal(PULSE)
    (first,) = as_states(x, ends=False)
    client.infer("smoothing", {"x": x}, sequence_id=6, sequence_start=True)
    for _ in range(2):
        np.testing.assert_array_equal(client.infer("smoothing", {"x": x}), first)
    row = np.ones((1, 3), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(client.infer("recurrent", {"x": row}), steps(recurrent(), [row])[0])
    assert client.told == {}


def test_a_start_in_the_middle_begins_anew(client: Client) -> None:
    x = signal(PULSE)
    first, second = as_states(np.concatenate([x, x], 2), ends=False)
    for starts, wanted in ((True, first), (False, second), (True, first), (False, second)):
        found = client.infer("smoothing", {"x": x}, sequence_id=8, sequence_start=starts)
        np.testing.assert_array_equal(found, wanted)


def test_numbers_and_texts_name_different_sequences(client: Client) -> None:
    x = signal(PULSE)
    first, second = as_states(np.concatenate([x, x], 2), ends=False)
    for name, starts, wanted in ((9, True, first), ("9", True, first), (9, False, second), ("9", False, second)):
        found = client.infer("smoothing", {"x": x}, sequence_id=name, sequence_start=starts)
        np.testing.assert_array_equal(found, wanted)


def test_inputs_that_do_not_stream_stay_as_they_were(client: Client) -> None:
    x = np.random.default_rng(5).normal(size=(1, 21)).astype(np.float32)
    gain = np.full((1, 1), 3, np.float32)
    whole = list(pulsed(with_gain()).stream([x], {"gain": gain}))
    found, pieces = list[Any](), cut(x, 4, 9)
    for turn, piece in enumerate(pieces):
        marks = {"sequence_start": turn == 0, "sequence_end": turn == len(pieces) - 1}
        found.append(client.infer("gain", {"x": piece, "gain": gain}, sequence_id=3, stream=True, **marks))
        if turn == 1:
            with pytest.raises(InferenceServerException, match=r"input 'gain'.*it does not stream, and is another one"):
                client.infer("gain", {"x": piece, "gain": gain + 1}, sequence_id=3, stream=True)
    np.testing.assert_array_equal(np.concatenate(found, 1), np.concatenate([np.asarray(one[0]) for one in whole], 1))
    assert client.infer("gain", {"x": x, "gain": gain}, "twice", stream=True).tolist() == [[6.0]]


# Refused


def test_a_sequence_that_was_not_started_is_refused(client: Client) -> None:
    for name in (77, "nobody"):
        with pytest.raises(InferenceServerException, match="was not started here, or has ended"):
            client.infer("smoothing", {"x": signal(PULSE)}, sequence_id=name)
    client.infer("smoothing", {"x": signal(PULSE)}, sequence_id=77, sequence_start=True, sequence_end=True)
    with pytest.raises(InferenceServerException, match="was not started here, or has ended") as caught:
        client.infer("smoothing", {"x": signal(PULSE)}, sequence_id=77)
    assert caught.value.status() in ("404", "StatusCode.NOT_FOUND")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"sequence_id": -1}, "sequence_id is '?-1'?, wanted a number from 1 on"),
        ({"sequence_id": "x" * 300}, "a text of at most 256 printable characters"),
        ({"sequence_id": "a\nb"}, "a text of at most 256 printable characters"),
        ({"keep": True}, "says something of a sequence, and has no sequence_id"),
        ({"stream": "yes"}, "stream is 'yes', wanted true or false"),
        ({"sequence_id": 4, "sequence_start": True, "sequence_turn": -3}, "sequence_turn is -3, wanted a number"),
        ({"sequence_id": 4, "sequence_start": True, "sequence_turn": 3}, "sequence_turn is 3, and .* is at turn 0"),
    ],
)
def test_parameters_that_are_none_are_refused(client: Client, asked: dict[str, Any], problem: str) -> None:
    with pytest.raises(InferenceServerException, match=problem):
        client.infer("smoothing", {"x": signal(PULSE)}, **asked)
    with pytest.raises(InferenceServerException, match="was not started"):  # nothing was begun
        client.infer("smoothing", {"x": signal(PULSE)}, sequence_id=4)


def test_streams_and_turns_are_not_mixed(client: Client) -> None:
    client.infer("smoothing", {"x": signal(3)}, sequence_id=11, sequence_start=True, stream=True)
    with pytest.raises(InferenceServerException, match="sequence '11' was begun as a stream"):
        client.infer("smoothing", {"x": signal(PULSE)}, sequence_id=11)
    client.infer("smoothing", {"x": signal(PULSE)}, sequence_id=12, sequence_start=True)
    with pytest.raises(InferenceServerException, match="sequence '12' was begun turn by turn"):
        client.infer("smoothing", {"x": signal(PULSE)}, sequence_id=12, stream=True)
    with pytest.raises(InferenceServerException, match="the model takes no stream"):
        client.infer("recurrent", {"x": np.ones((1, 3), np.float32)}, sequence_id=1, sequence_start=True, stream=True)


def test_what_does_not_fit_changes_nothing(client: Client) -> None:
    x = signal(30)
    found = [client.infer("smoothing", {"x": x[..., :10].copy()}, sequence_id=13, sequence_start=True, stream=True)]
    for bad in (np.zeros((1, 3, 4), np.float32), np.zeros((2, 4), np.float32)):
        with pytest.raises(InferenceServerException, match="shape is"):
            client.infer("smoothing", {"x": bad}, sequence_id=13, stream=True)
    with pytest.raises(InferenceServerException, match="unknown: z"):
        client.infer("smoothing", {"z": x}, sequence_id=13, stream=True)
    found.append(client.infer("smoothing", {"x": x[..., 10:].copy()}, sequence_id=13, sequence_end=True, stream=True))
    np.testing.assert_array_equal(np.concatenate(found, 2), streamed(smoothing(), x))
    one, two = np.ones((1, 3), np.float32), np.ones((2, 3), np.float32)
    client.infer("recurrent", {"x": one}, sequence_id=13, sequence_start=True)
    with pytest.raises(InferenceServerException):  # the state is of one row
        client.infer("recurrent", {"x": two}, sequence_id=13)
    found = client.infer("recurrent", {"x": one}, sequence_id=13)
    np.testing.assert_array_equal(found, steps(recurrent(), [one, one])[1])


def test_an_answer_that_was_lost_is_asked_for_again(client: Client) -> None:
    """By the number of the turn: a request that was done already is not done twice."""
    x = signal(PULSE * 3)
    wanted, pieces = as_states(x), cut(x, PULSE)
    for turn, piece in enumerate(pieces):
        marks = {"sequence_id": 14, "sequence_start": turn == 0, "sequence_turn": turn}
        np.testing.assert_array_equal(client.infer("smoothing", {"x": piece}, **marks)[..., :1], wanted[turn][..., :1])
        if turn:
            again = client.infer("smoothing", {"x": piece}, **marks)
            np.testing.assert_array_equal(again[..., :1], wanted[turn][..., :1])
            assert client.told["sequence_turn"] == turn
    with pytest.raises(InferenceServerException, match="sequence_turn is 1, and sequence '14' is at turn 3"):
        client.infer("smoothing", {"x": pieces[1]}, sequence_id=14, sequence_turn=1)
    with pytest.raises(InferenceServerException, match="sequence_turn is 4, and sequence '14' is at turn 3"):
        client.infer("smoothing", {"x": pieces[1]}, sequence_id=14, sequence_turn=4)


# What a model says of itself


def test_states_are_not_asked_of_clients(server: Running) -> None:
    with triton_http.InferenceServerClient(server.http) as client:
        told = client.get_model_metadata("recurrent")
        assert [one["name"] for one in told["inputs"]] == ["x"]
        assert [one["name"] for one in told["outputs"]] == ["y"]
        config = client.get_model_config("recurrent")
        assert int(config["sequence_batching"]["max_sequence_idle_microseconds"]) == 60_000_000
        assert config["sequence_batching"]["state"][0]["input_name"] == "h"
        config = client.get_model_config("smoothing")
        assert int(config["sequence_batching"]["max_sequence_idle_microseconds"]) == 60_000_000
        assert [*map(int, config["input"][0]["dims"])] == [1, 2, PULSE]
        given = tensors(triton_http, {"x": np.ones((1, 3), np.float32), "h": np.ones((1, 4), np.float32)})
        with pytest.raises(InferenceServerException, match="the inputs are x; unknown: h"):
            client.infer("recurrent", given)


# Side by side, and in order


def test_requests_of_one_sequence_wait_for_each_other(server: Running) -> None:
    """Many at once: each is one turn, none is lost or done twice, whatever the order in which they come."""
    row = np.full((1, 3), 0.5, np.float32)
    first = Client(server, "http")
    first.infer("recurrent", {"x": row}, sequence_id=20, sequence_start=True)

    def ask(_: int) -> int:
        one = Client(server, "http")
        one.infer("recurrent", {"x": row}, sequence_id=20)
        return one.told["sequence_turn"]

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(ask, range(24))) == list(range(1, 25))
    found = first.infer("recurrent", {"x": row}, sequence_id=20)
    np.testing.assert_array_equal(found, steps(recurrent(), [row] * 26)[-1])


def test_many_sequences_at_once_are_whole_runs(server: Running) -> None:
    def run(seed: int) -> bool:
        x, client, found = signal(40 + seed, seed), Client(server, "grpc" if seed % 2 else "http"), list[Any]()
        pieces = cut(x, 3 + seed, 1)
        for turn, piece in enumerate(pieces):
            marks = {"sequence_start": turn == 0, "sequence_end": turn == len(pieces) - 1}
            found.append(client.infer("smoothing", {"x": piece}, sequence_id=f"s{seed}", stream=True, **marks))
        return np.array_equal(np.concatenate(found, 2), streamed(smoothing(), x))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, range(12)))


def test_turns_of_different_sequences_are_one_run(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """States are laid together like other inputs, along the rows; the results are those of each alone."""
    served = server.server.serving.tensors("recurrent")
    assert served.found.rows is not None
    monkeypatch.setattr(lane, "QUICK_S", 0.0)
    held = threading.Event()
    served.apart(held.wait)  # the thread that runs is busy: what comes meanwhile waits
    before = served.statistics.runs
    rows = [np.random.default_rng(n).normal(size=(1, 3)).astype(np.float32) for n in range(6)]

    def ask(number: int) -> Any:
        one = Client(server, "http")
        return one.infer("recurrent", {"x": rows[number]}, sequence_id=f"r{number}", sequence_start=True)

    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(ask, number) for number in range(6)]
        until = time.monotonic() + 10
        while served.lane.waiting < 5 and time.monotonic() < until:
            time.sleep(0.005)
        held.set()
        found = [one.result() for one in asked]
    assert served.statistics.runs - before <= 2
    for number, one in enumerate(found):
        np.testing.assert_allclose(one, steps(recurrent(), [rows[number]])[0], rtol=1e-6)


def test_a_client_that_leaves_in_the_middle_of_a_turn(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next request waits until the turn is over, and may ask for what it gave."""
    monkeypatch.setattr(lane, "QUICK_S", 0.0)
    begun, goes_on, run = threading.Event(), threading.Event(), tract.State.run
    served = server.server.serving.tensors("smoothing")
    pieces = cut(signal(PULSE * 4), PULSE)
    wanted = as_states(signal(PULSE * 4), ends=False)

    def ask(turn: int) -> Any:
        asked = {"sequence_id": "left", "sequence_start": turn == 0, "sequence_turn": turn}
        return served.infer({"x": (tract.DatumType.F32, pieces[turn])}, Wish(parameters=asked))

    def slow(state: tract.State, inputs: Any) -> Any:
        begun.set()
        goes_on.wait(10)
        return run(state, inputs)

    async def scenario() -> list[Any]:
        found = [await ask(0)]
        with monkeypatch.context() as patch:
            patch.setattr(tract.State, "run", slow)
            leaving = asyncio.ensure_future(ask(1))
            await asyncio.to_thread(begun.wait)
            leaving.cancel()
            again = asyncio.ensure_future(ask(1))
            await asyncio.sleep(0.05)
            leaving.cancel()
            assert not again.done()
            assert not leaving.done()
            goes_on.set()
            found.append(await again)
            assert leaving.cancelled()
            never = asyncio.ensure_future(ask(2))
            await asyncio.sleep(0)
            never.cancel()
        await asyncio.gather(never, return_exceptions=True)
        return [*found, await ask(2), await ask(3)]

    for found, want in zip(server.call(scenario()), wanted, strict=True):
        np.testing.assert_array_equal(found[0], want)


# Operators that keep something


def lstm() -> Any:
    """A layer of LSTM: ``x`` [T, N, 3] -> ``y`` [T, 1, N, 4]."""
    numbers = np.random.default_rng(0)
    made = [
        numpy_helper.from_array(numbers.normal(size=shape).astype(np.float32), name)
        for name, shape in (("w", (1, 16, 3)), ("r", (1, 16, 4)))
    ]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)
    return network([node], [("x", 1, ["T", "N", 3])], [("y", 1, ["T", 1, "N", 4])], made)


def test_what_operators_keep_goes_on(tmp_path: Path) -> None:
    put(tmp_path, "lstm", lstm())
    x = np.random.default_rng(1).normal(size=(9, 2, 3)).astype(np.float32)
    state = tract.load_bytes(lstm().SerializeToString()).into_runnable().spawn_state()
    with serving(tmp_path) as running:
        client = Client(running, "grpc")
        for begin, end in ((0, 4), (4, 5), (5, 9)):
            piece = np.ascontiguousarray(x[begin:end])
            marks = {"sequence_start": begin == 0, "sequence_end": end == 9}
            found = client.infer("lstm", {"x": piece}, sequence_id=1, **marks)
            np.testing.assert_array_equal(found, np.asarray(state.run([piece])[0]))
        alone = client.infer("lstm", {"x": x})
        whole = tract.load_bytes(lstm().SerializeToString()).into_runnable().run([x])[0]
        np.testing.assert_array_equal(alone, np.asarray(whole))
        assert running.server.serving.tensors("lstm").told()["sequences"] == "what operators keep"


# Bounds


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("small")
    put(folder, "smoothing", smoothing(), config=parameter("pulse", f"S={PULSE}"))
    idle = STATE.format("").replace("{", "{ max_sequence_idle_microseconds: 300000", 1)
    put(folder, "recurrent", recurrent(), config=idle)
    with serving(folder, limits={"sequences": 3}) as running:
        yield running


def test_one_sequence_too_many_is_refused_early(small: Running) -> None:
    client, x = Client(small, "http"), signal(PULSE)
    for name in (1, 2, 3):
        client.infer("smoothing", {"x": x}, sequence_id=name, sequence_start=True)
    with pytest.raises(InferenceServerException, match="3 sequences are kept, and no more are taken") as caught:
        client.infer("smoothing", {"x": x}, sequence_id=4, sequence_start=True)
    assert caught.value.status() == "503"
    client.infer("smoothing", {"x": x}, sequence_id=2, sequence_end=True)
    client.infer("smoothing", {"x": x}, sequence_id=4, sequence_start=True)
    client.infer("smoothing", {"x": x})  # alone, it always may


def test_a_sequence_without_requests_ends(small: Running) -> None:
    client, row = Client(small, "http"), np.ones((1, 3), np.float32)
    for name in (1, 2, 3):
        client.infer("recurrent", {"x": row}, sequence_id=name, sequence_start=True)
    begun = time.monotonic()
    while time.monotonic() < begun + 0.6:
        client.infer("recurrent", {"x": row}, sequence_id=1)
        time.sleep(0.05)
    client.infer("recurrent", {"x": row}, sequence_id=1)
    for name in (2, 3):
        with pytest.raises(InferenceServerException, match=r"without a request for 0\.3 seconds has ended"):
            client.infer("recurrent", {"x": row}, sequence_id=name)
    client.infer("recurrent", {"x": row}, sequence_id=4, sequence_start=True)
    table = small.server.serving.tensors("recurrent").sequences  # pyright: ignore[reportAttributeAccessIssue]
    assert len(table) == 2


def two_signals() -> Any:
    """``y`` = ``a`` + ``b`` [1, S]."""
    node = helper.make_node("Add", ["a", "b"], ["y"])
    return network([node], [("a", 1, [1, "S"]), ("b", 1, [1, "S"])], [("y", 1, [1, "S"])])


def test_states_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequenced, "_LOOK_FROM", 1)
    put_models(tmp_path)
    with serving(tmp_path, grpc_port=None, limits={"sequence_bytes": 15}) as running:
        client = Client(running, "http")
        for model, x in (("recurrent", np.ones((1, 3), np.float32)), ("smoothing", signal(PULSE))):
            with pytest.raises(InferenceServerException, match=r"has [1-9]\d+ bytes, at most 15 are kept") as caught:
                client.infer(model, {"x": x}, sequence_id=1, sequence_start=True)
            assert caught.value.status() == "413"
            with pytest.raises(InferenceServerException, match="was not started"):
                client.infer(model, {"x": x}, sequence_id=1)


def test_inputs_that_run_ahead_count_as_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequenced, "_LOOK_FROM", 1)
    put(tmp_path, "two", two_signals(), config=parameter("pulse", "S=4"))
    with serving(tmp_path, grpc_port=None, limits={"sequence_bytes": 10_000}) as running:
        client, none = Client(running, "http"), np.zeros((1, 0), np.float32)
        x = np.arange(1000, dtype=np.float32)[None]
        client.infer("two", {"a": x, "b": none}, sequence_id=1, sequence_start=True, stream=True)
        found = client.infer("two", {"a": none, "b": x}, sequence_id=1, sequence_end=True, stream=True)
        np.testing.assert_array_equal(found, 2 * x)
        with pytest.raises(InferenceServerException, match=r"has \d+ bytes, at most 10000 are kept"):
            client.infer("two", {"a": np.tile(x, 4), "b": none}, sequence_id=1, sequence_start=True, stream=True)


def test_idle_states_are_frozen_and_go_on(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOMENT_S", 0.1)
    client, x = Client(server, "http"), signal(30)
    found = [client.infer("smoothing", {"x": x[..., :11].copy()}, sequence_id="cold", sequence_start=True, stream=True)]
    served: Any = server.server.serving.tensors("smoothing")
    sequence = served.sequences.find("text cold")
    until = time.monotonic() + 10
    while sequence.going is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert sequence.frozen
    assert sequence.bytes == len(sequence.frozen)
    found.append(
        client.infer("smoothing", {"x": x[..., 11:].copy()}, sequence_id="cold", sequence_end=True, stream=True)
    )
    np.testing.assert_array_equal(np.concatenate(found, 2), streamed(smoothing(), x))


# Loaded again


def test_sequences_outlive_a_reload_of_the_same_model_and_no_other(tmp_path: Path) -> None:
    put_models(tmp_path)
    with serving(tmp_path) as running, triton_http.InferenceServerClient(running.http) as control:
        client, x = Client(running, "http"), signal(40)
        found = [client.infer("smoothing", {"x": x[..., :13].copy()}, sequence_id=1, sequence_start=True, stream=True)]
        row = np.ones((1, 3), np.float32)
        client.infer("recurrent", {"x": row}, sequence_id=1, sequence_start=True)
        control.load_model("smoothing")
        control.load_model("recurrent")
        found.append(
            client.infer("smoothing", {"x": x[..., 13:].copy()}, sequence_id=1, sequence_end=True, stream=True)
        )
        np.testing.assert_array_equal(np.concatenate(found, 2), streamed(smoothing(), x))
        np.testing.assert_array_equal(
            client.infer("recurrent", {"x": row}, sequence_id=1), steps(recurrent(), [row, row])[1]
        )
        put(tmp_path, "recurrent", recurrent(seed=9), config=STATE.format(""))
        control.load_model("recurrent")
        with pytest.raises(InferenceServerException, match="was not started here, or has ended"):
            client.infer("recurrent", {"x": row}, sequence_id=1)


# States that the configuration names


@pytest.mark.parametrize(
    ("state", "begin"),
    [
        ("dims: [ 4 ]", 0.0),
        ("dims: [ -1, 4 ] data_type: TYPE_FP32", 0.0),
        ('initial_state: { data_type: TYPE_FP32 dims: [ 1, 4 ] zero_data: true name: "zeros" }', 0.0),
        ('initial_state: { data_type: TYPE_FP32 dims: [ 1, 4 ] data_file: "half" name: "half" }', 0.5),
    ],
)
def test_initial_states(tmp_path: Path, state: str, begin: float) -> None:
    folder = put(tmp_path, "recurrent", recurrent(), config=STATE.format(state))
    (folder / "initial_state").mkdir()
    (folder / "initial_state" / "half").write_bytes(np.full((1, 4), 0.5, np.float32).tobytes())
    row = np.ones((1, 3), np.float32)
    given = {"x": row, "h": np.full((1, 4), begin, np.float32)}
    wanted = np.asarray(tract.load_bytes(recurrent().SerializeToString()).into_runnable().run(given)[0])
    with serving(tmp_path, grpc_port=None) as running:
        for more in ({}, {"sequence_id": 1, "sequence_start": True}):
            np.testing.assert_array_equal(Client(running, "http").infer("recurrent", {"x": row}, **more), wanted)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            'sequence_batching { state [ { input_name: "g" output_name: "h_out" } ] }',
            "there is no input 'g'; inputs: x, h",
        ),
        (
            'sequence_batching { state [ { input_name: "h" output_name: "g" } ] }',
            "there is no output 'g'; outputs: y, h_",
        ),
        (STATE.format("dims: [ 5 ]"), r"dims are \[5\], the model has"),
        (STATE.format("dims: [ 1, 1, 4 ]"), r"dims are \[1, 1, 4\], the model has"),
        (STATE.format('initial_state: { data_file: "../config.pbtxt" }'), "wanted the name of a file in initial_state"),
        (STATE.format('initial_state: { data_file: "none" dims: [ 1, 4 ] }'), "there is no file initial_state/none"),
        (STATE.format("initial_state: { data_type: TYPE_INT8 data_file: 'none' }"), "is INT8, the model has FP32"),
        (
            'sequence_batching { state [ { input_name: "x" output_name: "h_out" } ] }',
            r"is N,3,f32, and 'h_out' is N,4,f32|no other input",
        ),
    ],
)
def test_configurations_that_name_no_state_are_refused(tmp_path: Path, config: str, problem: str) -> None:
    put(tmp_path, "recurrent", recurrent(), config=config)
    with serving(tmp_path, grpc_port=None) as running:
        (entry,) = running.server.serving.repository.index
        assert entry.state == "UNAVAILABLE"
        assert re.search(problem, entry.reason), entry.reason
