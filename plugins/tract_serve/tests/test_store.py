"""States in a store: signed, bounded, resumed bit for bit after a kill and on other replicas, refused where touched."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal as signals
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from sequence_models import (
    STATE,
    cut,
    put_models,
    recurrent,
    signal,
    smoothing,
    steps,
    streamed,
    tensors,
)
from servers import Running, process, put, serving
from tract_serve.errors import BadRequest
from tract_serve.sequences import table
from tract_serve.sequences.folder import FolderPlace
from tract_serve.sequences.places import store_of
from tract_serve.sequences.redis import RedisPlace
from tract_serve.sequences.signing import Head, Signer
from tract_serve.sequences.store import NotStored, Place, Store
from tract_serve.settings import Limits, Settings
from tritonclient.utils import InferenceServerException

from tract_core.errors import InputError

KEY = bytes(range(40))
HEAD = Head("model", "1", "digest", "number 7", 3)


# Signatures


class FakeRedis:
    """As much of the client of Redis as a store uses, in memory."""

    def __init__(self, fails: bool = False) -> None:
        self.values: dict[str, bytes] = {}
        self.sorted: dict[str, float] = {}
        self.ends: dict[str, float] = {}
        self.fails = fails
        self._results: list[Any] = []

    def __enter__(self) -> FakeRedis:
        self._results = []
        return self

    def __exit__(self, *_: object) -> None: ...

    def pipeline(self, transaction: bool) -> FakeRedis:
        return self

    def execute(self) -> list[Any]:
        return self._results

    def ping(self) -> None: ...

    def set(self, name: str, content: bytes, px: int) -> None:
        if self.fails:
            raise OSError("OOM command not allowed when used memory > 'maxmemory'.")
        self.values[name] = content
        self.ends[name] = time.time() + px / 1000

    def _sweep(self) -> None:
        for name in [one for one, end in self.ends.items() if end < time.time()]:
            self.values.pop(name, None)

    def get(self, name: str) -> bytes | None:
        self._sweep()
        return self.values.get(name)

    def getrange(self, name: str, begin: int, end: int) -> bytes:
        self._sweep()
        return self.values.get(name, b"")[begin : end + 1]

    def delete(self, *names: str) -> None:
        for name in names:
            self.values.pop(name, None)

    def zadd(self, _: str, given: dict[str, float]) -> None:
        self.sorted |= given

    def zrem(self, _: str, name: str) -> None:
        self.sorted.pop(name, None)

    def zremrangebyscore(self, _: str, low: float, high: float) -> None:
        self.sorted = {name: one for name, one in self.sorted.items() if not low <= one <= high}

    def zcard(self, _: str) -> None:
        self._results.append(len(self.sorted))

    def zpopmin(self, _: str, count: int) -> list[tuple[bytes, float]]:
        oldest = sorted(self.sorted.items(), key=lambda one: one[1])[:count]
        for name, _ in oldest:
            del self.sorted[name]
        return [(name.encode(), one) for name, one in oldest]


@pytest.fixture
def fake_redis(monkeypatch: pytest.MonkeyPatch) -> FakeRedis:
    fake, module = FakeRedis(), ModuleType("redis")
    client = SimpleNamespace(from_url=lambda *_, **__: fake)
    vars(module).update(Redis=client, RedisError=type("RedisError", (Exception,), {}))
    monkeypatch.setitem(sys.modules, "redis", module)
    return fake


@pytest.fixture(scope="module")
def real_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("redis")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
    server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(params=["folder", "fake redis", "real redis"])
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Limits], Place]:
    if request.param == "folder":
        return lambda limits: FolderPlace(str(tmp_path / "store"), limits)
    if request.param == "fake redis":
        request.getfixturevalue("fake_redis")
        return lambda limits: RedisPlace("redis://nowhere", limits)
    address = request.getfixturevalue("real_redis")
    place = RedisPlace(address, Limits())
    place._client.flushdb()  # pyright: ignore[reportPrivateUsage]: the database is the test's own
    return lambda limits: RedisPlace(address, limits)


def test_places(make_place: Callable[[Limits], Place]) -> None:
    place = make_place(Limits())
    assert place.get("a") is place.tag("a") is None
    place.put("a", b"x" * 64)
    first = place.tag("a")
    assert place.get("a") == b"x" * 64
    assert first is not None
    assert place.tag("a") == first
    place.put("a", b"y" * 64)
    assert place.tag("a") != first
    assert make_place(Limits()).get("a") == b"y" * 64
    place.remove("a")
    place.remove("a")
    assert place.get("a") is None


def test_places_are_bounded_in_number(make_place: Callable[[Limits], Place]) -> None:
    place = make_place(Limits(stored=6))
    for number in range(12):
        place.put(f"{number:x}", bytes(100))
        time.sleep(0.003)
    left = [number for number in range(12) if place.get(f"{number:x}") is not None]
    assert left == [*range(12 - len(left), 12)]
    assert 4 <= len(left) <= 6


def test_places_forget_what_is_old(make_place: Callable[[Limits], Place]) -> None:
    place = make_place(Limits(stored_s=0.2))
    place.put("a", b"x")
    time.sleep(0.3)
    store = Store(place, Signer(KEY), Limits())
    assert place.tag("a") is None
    assert store.get(HEAD) is None


def test_folders_are_bounded_in_bytes(tmp_path: Path) -> None:
    place = FolderPlace(str(tmp_path), Limits(stored_bytes=10_000, stored=1000))
    for number in range(20):
        place.put(f"{number:x}", bytes(1500))
        os.utime(tmp_path / f"{number:x}.sequence", (1e9 + number, 2e9 + number))
        assert sum(one.stat().st_size for one in tmp_path.iterdir()) <= 10_000 + 1500
    assert place.get("13") is not None


def test_what_was_left_half_written_is_swept(tmp_path: Path) -> None:
    (tmp_path / ".0123.unfinished").write_bytes(b"x")
    os.utime(tmp_path / ".0123.unfinished", (1, 1))
    (tmp_path / "notes.txt").write_text("of somebody else")
    FolderPlace(str(tmp_path), Limits()).put("a", b"x")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.sequence", "notes.txt"]


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = FolderPlace(str(tmp_path), Limits())
    place.put("a", b"before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotStored, match="it cannot be written: No space left on device"):
        place.put("a", b"after")
    assert place.get("a") == b"before"
    assert [one.name for one in tmp_path.iterdir()] == ["a.sequence"]


def test_a_full_database_says_so(fake_redis: FakeRedis) -> None:
    place = RedisPlace("redis://:secret@nowhere:1/0", Limits())
    fake_redis.fails = True
    with pytest.raises(NotStored, match=r"redis://nowhere:1/0.*OOM command not allowed"):
        place.put("a", b"x")


def test_stores_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="needs a key"):
        store_of(Settings(store=str(tmp_path)))
    with pytest.raises(InputError, match="the store cannot be made"):
        store_of(Settings(store=str(tmp_path / "file"), store_key=str(key)))
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(InputError, match=r"needs its client(.|\n)*pip install 'tract-serve\[redis\]'"):
        store_of(Settings(store="redis://nowhere", store_key=str(key)))
    assert store_of(Settings()) is None


def test_a_database_that_is_not_reached(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    with pytest.raises(InputError, match="the store is not reached") as caught:
        RedisPlace("redis://:secret@127.0.0.1:1/0", Limits())
    assert "secret" not in str(caught.value)


def test_states_of_others_are_refused_with_the_reason(tmp_path: Path) -> None:
    store = Store(FolderPlace(str(tmp_path), Limits()), Signer(KEY), Limits(sequence_bytes=100))
    store.put(HEAD, b"state")
    (file,) = tmp_path.iterdir()
    found = store.get(HEAD)
    assert found is not None
    assert (found.state, found.turns) == (b"state", 3)
    for other, problem in (
        (Head("model", "1", "another", "number 7", 0), "the model, or what runs it, has changed since"),
        (Head("model", "2", "digest", "number 7", 0), "one of version 1, and this is version 2"),
        (Head("model", "1", "digest", "number 8", 0), "of another sequence or another model"),
        (Head("model", "1", "digest", "text 7", 0), "of another sequence or another model"),
        (Head("others", "1", "digest", "number 7", 0), "of another sequence or another model"),
    ):
        content = file.read_bytes()
        store.put(other, b"")
        place = next(one for one in [*tmp_path.iterdir()] if one != file or other.digest == "another")
        place.write_bytes(content)  # as if somebody had copied it there
        with pytest.raises(BadRequest, match=problem):
            store.get(other)
        place.unlink()
        file.write_bytes(content)
    with pytest.raises(NotStored, match="the state has 101 bytes, at most 100 are kept"):
        store.put(HEAD, bytes(101))


# Servers


class Client:
    """A client of one server. ``told``: parameters of the last answer."""

    def __init__(self, http: str) -> None:
        self._client = triton.InferenceServerClient(http)
        self.told: dict[str, Any] = {}

    def infer(self, model: str, x: Any, **asked: Any) -> Any:
        more = {name: asked.pop(name) for name in [*asked] if name in ("stream", "keep", "sequence_turn")}
        result = self._client.infer(model, tensors(triton, {"x": x}), parameters=more or None, **asked)
        self.told = result.get_response().get("parameters", {})
        return result.as_numpy("y")


@pytest.fixture
def store(tmp_path: Path) -> dict[str, Any]:
    key = tmp_path / "key"
    key.write_bytes(KEY)
    return {"store": str(tmp_path / "store"), "store_key": str(key)}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return put_models(tmp_path / "models")


ROWS = [np.random.default_rng(turn).normal(size=(1, 3)).astype(np.float32) for turn in range(9)]
SIGNAL = signal(70)
CHUNKS = [*cut(SIGNAL, 5, 11, 1), np.zeros((1, 2, 0), np.float32)]


def test_killed_in_the_middle_and_resumed_bit_for_bit(models: Path, store: dict[str, Any]) -> None:
    """The server is killed; the clients go on with the next one where they were, and get what the whole run gives."""
    shutil.rmtree(models / "gain")
    options = ["--store", store["store"], "--store-key", store["store_key"], "--store-every", "1", "--grpc-port", "-1"]
    chunks, rows, turn = list[Any](), list[Any](), 0
    for until in (4, 9):
        with process(models, *options) as server:
            client = Client(server.http)
            while turn < until:
                starts = turn == 0
                asked = {"sequence_id": "sound", "sequence_turn": turn, "sequence_end": turn == 8, "stream": True}
                rest = np.concatenate(CHUNKS[8:], 2) if turn == 8 else CHUNKS[turn]
                chunks.append(client.infer("smoothing", rest, sequence_start=starts, **asked))
                rows.append(client.infer("recurrent", ROWS[turn], sequence_id=3, sequence_start=starts))
                assert client.told == {"sequence_turn": turn, "stored": True}
                turn += 1
            assert server.end(signals.SIGKILL) == -signals.SIGKILL
    np.testing.assert_array_equal(np.concatenate(chunks, 2), streamed(smoothing(), SIGNAL))
    np.testing.assert_array_equal(np.stack(rows), np.stack(steps(recurrent(), ROWS)))
    assert len([*Path(store["store"]).iterdir()]) == 1  # what has ended has left the store


@pytest.mark.skipif("TRACT_LONG" not in os.environ, reason="takes a minute")
def test_killed_at_any_moment_no_turn_is_lost_or_done_twice(models: Path, store: dict[str, Any]) -> None:
    """The client sends a turn again until it has its answer, and goes back to the turn that the server names."""
    options = ["--store", store["store"], "--store-key", store["store_key"], "--store-every", "1", "--grpc-port", "-1"]
    random, rows = np.random.default_rng(0), [np.random.default_rng(n).normal(size=(1, 3)) for n in range(800)]
    rows, found, kills, turn = [row.astype(np.float32) for row in rows], dict[int, Any](), 0, 0
    wanted = steps(recurrent(), rows)
    while turn < len(rows):
        with process(models, *options) as server:
            client = Client(server.http)
            if kills < 5:
                threading.Timer(random.uniform(0.02, 0.5), server.process.kill).start()
                kills += 1
            while turn < len(rows):
                try:
                    start = turn == 0
                    y = client.infer("recurrent", rows[turn], sequence_id=1, sequence_start=start, sequence_turn=turn)
                except InferenceServerException as error:
                    turn = int(re.findall("is at turn ([0-9]+)", str(error))[0])
                    continue
                except (OSError, HTTPConnectionClosed, HTTPParseError):
                    break
                np.testing.assert_array_equal(y, wanted[turn])
                found[turn] = y
                turn += 1
    assert kills == 5
    np.testing.assert_array_equal(np.stack([found[n] for n in range(len(rows))]), np.stack(wanted))


def test_replicas_take_turns(models: Path, store: dict[str, Any]) -> None:
    """Each request goes to the other server than the one before."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(models, **store, store_every=1, grpc_port=None)) for _ in range(2)]
        clients = [Client(server.http) for server in servers]
        marks = [{"sequence_start": turn == 0, "sequence_end": turn == len(CHUNKS) - 1} for turn in range(len(CHUNKS))]
        found = [
            clients[turn % 2].infer("smoothing", chunk, sequence_id=1, stream=True, **marks[turn])
            for turn, chunk in enumerate(CHUNKS)
        ]
        rows = [
            clients[turn // 2 % 2].infer("recurrent", row, sequence_id=2, sequence_start=turn == 0)
            for turn, row in enumerate(ROWS)
        ]
    np.testing.assert_array_equal(np.concatenate(found, 2), streamed(smoothing(), SIGNAL))
    np.testing.assert_array_equal(np.stack(rows), np.stack(steps(recurrent(), ROWS)))


def test_a_server_that_ends_stores_what_it_has(models: Path, store: dict[str, Any]) -> None:
    with serving(models, **store, grpc_port=None) as server:
        first = Client(server.http).infer("smoothing", CHUNKS[1], sequence_id=1, sequence_start=True, stream=True)
    with serving(models, **store, grpc_port=None) as server:
        client = Client(server.http)
        with pytest.raises(InferenceServerException, match="sequence_turn is 3, and sequence '1' is at turn 1"):
            client.infer("smoothing", CHUNKS[2], sequence_id=1, stream=True, sequence_turn=3)
        rest = client.infer("smoothing", CHUNKS[0], sequence_id=1, sequence_end=True, stream=True)
    whole = streamed(smoothing(), np.concatenate([CHUNKS[1], CHUNKS[0]], 2))
    np.testing.assert_array_equal(np.concatenate([first, rest], 2), whole)


def test_idle_sequences_leave_the_memory(models: Path, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOMENT_S", 0.05)
    with serving(models, **store, grpc_port=None, limits={"sequences": 2}) as server:
        client = Client(server.http)
        for name in (1, 2):
            client.infer("recurrent", ROWS[0], sequence_id=name, sequence_start=True)
        sequences = server.server.serving.tensors("recurrent").sequences  # pyright: ignore[reportAttributeAccessIssue]
        until = time.monotonic() + 10
        while len(sequences) and time.monotonic() < until:
            time.sleep(0.01)
        assert len(sequences) == 0
        assert len([*Path(store["store"]).iterdir()]) == 2
        client.infer("recurrent", ROWS[0], sequence_id=3, sequence_start=True)
        wanted = steps(recurrent(), [ROWS[0], ROWS[1]])[1]
        for name in (1, 2):
            np.testing.assert_array_equal(client.infer("recurrent", ROWS[1], sequence_id=name), wanted)


def test_the_stored_give_room_to_others(models: Path, store: dict[str, Any]) -> None:
    with serving(models, **store, grpc_port=None, limits={"sequences": 2}) as server:
        client = Client(server.http)
        for name in (1, 2, 3, 4):
            client.infer("recurrent", ROWS[0], sequence_id=name, sequence_start=True, keep=True)
        wanted = steps(recurrent(), [ROWS[0], ROWS[1]])[1]
        for name in (1, 4, 2):
            np.testing.assert_array_equal(client.infer("recurrent", ROWS[1], sequence_id=name, keep=True), wanted)


def test_a_full_store_leaves_the_sequence_in_memory(
    models: Path, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = steps(recurrent(), ROWS)
    with serving(models, **store, grpc_port=None) as server:
        client = Client(server.http)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            for turn in range(3):
                found = client.infer("recurrent", ROWS[turn], sequence_id=1, sequence_start=turn == 0, keep=True)
                np.testing.assert_array_equal(found, wanted[turn])
                assert client.told["stored"] is False
                assert "No space left on device" in client.told["not_stored"]
            assert not [*Path(store["store"]).iterdir()]
        np.testing.assert_array_equal(client.infer("recurrent", ROWS[3], sequence_id=1, keep=True), wanted[3])
        assert client.told["stored"] is True
    with serving(models, grpc_port=None) as server:
        client = Client(server.http)
        client.infer("recurrent", ROWS[0], sequence_id=1, sequence_start=True, keep=True)
        assert "the server has no store" in client.told["not_stored"]


def changed(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


@pytest.mark.parametrize("touch", [lambda content: content[:-5], changed, lambda _: b""], ids=["cut", "flip", "empty"])
def test_files_that_were_touched_are_refused(
    models: Path, store: dict[str, Any], touch: Callable[[bytes], bytes]
) -> None:
    with serving(models, **store, grpc_port=None) as server:
        Client(server.http).infer("recurrent", ROWS[0], sequence_id=1, sequence_start=True)
    (file,) = Path(store["store"]).iterdir()
    file.write_bytes(touch(file.read_bytes()))
    with serving(models, **store, grpc_port=None) as server:
        client = Client(server.http)
        with pytest.raises(InferenceServerException, match="not signed with the server's key"):
            client.infer("recurrent", ROWS[1], sequence_id=1)
        client.infer("recurrent", ROWS[0], sequence_id=1, sequence_start=True)  # and the sequence can begin anew
        found = client.infer("recurrent", ROWS[1], sequence_id=1)
        np.testing.assert_array_equal(found, steps(recurrent(), ROWS[:2])[1])


def test_files_of_two_sequences_that_were_swapped_are_refused(models: Path, store: dict[str, Any]) -> None:
    with serving(models, **store, grpc_port=None) as server:
        for name in (1, 2):
            Client(server.http).infer("recurrent", ROWS[name], sequence_id=name, sequence_start=True)
    one, two = Path(store["store"]).iterdir()
    contents = one.read_bytes(), two.read_bytes()
    two.write_bytes(contents[0])
    one.write_bytes(contents[1])
    with serving(models, **store, grpc_port=None) as server:
        for name in (1, 2):
            with pytest.raises(InferenceServerException, match="of another sequence or another model"):
                Client(server.http).infer("recurrent", ROWS[1], sequence_id=name)


def test_a_model_that_has_changed_refuses_states_of_before(models: Path, store: dict[str, Any]) -> None:
    with serving(models, **store, grpc_port=None) as server:
        client, control = Client(server.http), triton.InferenceServerClient(server.http)
        client.infer("recurrent", ROWS[0], sequence_id=1, sequence_start=True, keep=True)
        control.unload_model("recurrent")
        control.load_model("recurrent")
        found = client.infer("recurrent", ROWS[1], sequence_id=1, keep=True)
        np.testing.assert_array_equal(found, steps(recurrent(), ROWS[:2])[1])
        put(models, "recurrent", recurrent(seed=5), config=STATE.format(""))
        control.load_model("recurrent")
        with pytest.raises(InferenceServerException, match="has changed since the sequence was kept"):
            client.infer("recurrent", ROWS[1], sequence_id=1)


def test_resumed_from_a_database(models: Path, store: dict[str, Any], real_redis: str) -> None:
    given: dict[str, Any] = {**store, "store": real_redis, "store_every": 1, "grpc_port": None}
    found: list[Any] = []
    for turns in (range(2), range(2, 9)):
        with serving(models, **given) as server:
            client = Client(server.http)
            found += [client.infer("recurrent", ROWS[turn], sequence_id=1, sequence_start=turn == 0) for turn in turns]
    np.testing.assert_array_equal(np.stack(found), np.stack(steps(recurrent(), ROWS)))


def test_a_server_without_its_store_does_not_start(models: Path, tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"short")
    running = Running(models, Settings(http_port=0, grpc_port=None, store="x", store_key=str(tmp_path / "short")))
    with pytest.raises(InputError, match="the key has 5 bytes"):
        running.start()
