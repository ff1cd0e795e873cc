"""Whose turn it is between clients, what happens to answers whose clients leave, and to those of a model that is loaded
again."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import openai
import pytest
from chat_models import loaded, parameters, put_text
from servers import Running, serving
from tract_serve.chat.turns import Client, FairTurns, Places
from tract_serve.errors import Busy, TooLate, TooMany

A, B, C = (Client(name) for name in "abc")
ASKED: list[Any] = [{"role": "user", "content": "the quick fox"}]


# Places


def order_of(places: Places, asked: list[Client]) -> list[int]:
    """The order in which requests begin that all come at once, each of which takes a moment."""
    begun: list[int] = []

    async def one(turns: FairTurns, number: int) -> None:
        async with turns.of(asked[number]):
            begun.append(number)
            await asyncio.sleep(0.001)

    async def all_of_them() -> None:
        turns = FairTurns("m", places)
        await asyncio.gather(*[one(turns, number) for number in range(len(asked))])
        assert (turns.running, turns.waiting) == (0, 0)
        assert not turns._lines  # nobody is remembered
        assert not turns._hosts

    asyncio.run(all_of_them())
    return begun


def test_one_client_in_order() -> None:
    assert order_of(Places(2), [A] * 6) == list(range(6))


def test_clients_take_turns() -> None:
    assert order_of(Places(1), [A, A, A, A, B, B, C]) == [0, 4, 6, 1, 5, 2, 3]


def test_users_of_a_host_take_turns_within_its_share() -> None:
    first, second = Client("a", "first"), Client("a", "second")
    assert order_of(Places(1), [first, first, first, second, B, B]) == [0, 4, 3, 5, 1, 2]


def test_who_has_nothing_under_way_has_spare_places() -> None:
    async def check() -> None:
        turns = FairTurns("m", Places(2, spare=2))
        async with turns.of(A), turns.of(A):
            third = asyncio.ensure_future(_held(turns, A))
            other = asyncio.ensure_future(_held(turns, Client("a", "user")))
            new = asyncio.ensure_future(_held(turns, B))
            await asyncio.sleep(0.01)
            assert (third.done(), other.done(), new.done()) == (False, True, True)
            assert turns.running == 2
        await third
        assert turns.running == 0

    asyncio.run(check())


async def _held(turns: FairTurns, client: Client, seconds: float = 0.0) -> None:
    async with turns.of(client):
        await asyncio.sleep(seconds)


def test_too_many_are_refused() -> None:
    async def check() -> None:
        turns = FairTurns("m", Places(1, waiting=3, of_one=2))
        tasks = [asyncio.ensure_future(_held(turns, client, 0.05)) for client in (A, A, B, C)]
        await asyncio.sleep(0)
        with pytest.raises(TooMany, match="2 requests of this client wait or are under way"):
            turns.check(A)
        with pytest.raises(Busy, match="3 requests wait for it, and more may not"):
            await _held(turns, Client("d"))
        turns.check(Client("d"), 0)
        await asyncio.gather(*tasks)
        turns.check(A, 2)
        with pytest.raises(TooMany):
            turns.check(A, 3)

    asyncio.run(check())


def test_who_leaves_gives_back_a_place() -> None:
    async def check() -> None:
        turns = FairTurns("m", Places(1))
        first = asyncio.ensure_future(_held(turns, A, 60))
        second = asyncio.ensure_future(_held(turns, A, 60))
        third = asyncio.ensure_future(_held(turns, B))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        assert (turns.running, turns.waiting) == (1, 1)
        first.cancel()
        await third
        assert (turns.running, turns.waiting) == (0, 0)

    asyncio.run(check())


def test_who_leaves_when_its_turn_comes_gives_back_a_place() -> None:
    async def check() -> None:
        turns = FairTurns("m", Places(1))
        first = asyncio.ensure_future(_held(turns, A))
        second = asyncio.ensure_future(_held(turns, A, 60))
        while not first.done():
            await asyncio.sleep(0)
        second.cancel()  # it has its place, and has not been told yet
        await asyncio.wait_for(_held(turns, B), 1)

    asyncio.run(check())


def test_who_waits_too_long_is_told() -> None:
    async def check() -> None:
        turns = FairTurns("m", Places(1, timeout_s=0.02))
        first = asyncio.ensure_future(_held(turns, A, 0.1))
        await asyncio.sleep(0)
        with pytest.raises(TooLate, match=r"it waited for 0\.02 seconds, and was not begun"):
            await _held(turns, B)
        assert turns.waiting == 0
        await first

    asyncio.run(check())


# By clients


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models")
    put_text(found, "tiny", config=parameters(texts=2))
    return found


@pytest.fixture
def server(folder: Path) -> Iterator[Running]:
    with serving(folder) as running:
        yield running


def served_of(server: Running) -> Any:
    return server.server.serving.repository.model("tiny")


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return once it is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


@contextmanager
def held(served: Any) -> Generator[None]:
    """Inside, the model computes nothing."""
    steps, goes_on = served.writer._steps, threading.Event()
    step = steps._step
    steps._step = lambda some: (goes_on.wait(60), step(some))[1]
    try:
        yield
    finally:
        goes_on.set()


def body(**more: Any) -> dict[str, Any]:
    return {"model": "tiny", "messages": ASKED, "temperature": 0, "max_tokens": 3000, **more}


def left(server: Running, given: dict[str, Any], *, after: bytes | None) -> None:
    """Ask, and leave once something was read, or when it is being written."""
    host, port = server.http.split(":")
    content = json.dumps(given).encode()
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content)
        if after is None:
            until(lambda: served_of(server).turns.running > 0)
        else:
            found = b""
            while after not in found:
                found += connection.recv(1 << 16)


@pytest.mark.parametrize(("stream", "after"), [(True, b'"content":"'), (True, None), (False, None)])
@pytest.mark.parametrize("count", [1, 3])
def test_an_answer_whose_client_leaves_is_given_up(
    server: Running, stream: bool, after: bytes | None, count: int
) -> None:
    served = served_of(server)
    left(server, body(stream=stream, n=count), after=after)
    until(lambda: not served.turns.running and not served.turns.waiting and not served._open)
    until(lambda: not served.writer._open)
    assert served.counted.written == 0  # no answer came to its end


def test_a_prompt_whose_client_leaves_is_not_read_on(server: Running) -> None:
    served = served_of(server)
    steps = served.writer._steps
    step, seen = steps._step, list[int]()
    steps._step = lambda some: (seen.append(len(some[0][0].tokens)), time.sleep(0.05), step(some))[2]
    given = body(messages=[{"role": "user", "content": "the fox " * 900}], max_tokens=5)
    left(server, given, after=None)
    until(lambda: not served.writer._open)
    assert sum(seen) < 1500  # of more than 1800


def test_one_client_does_not_starve_another(server: Running) -> None:
    """40 requests of one are there, two under way; that of another one is answered among the first."""
    served = served_of(server)
    done: list[str] = []

    def ask(user: str) -> None:
        with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key=user, max_retries=0) as client:
            client.chat.completions.create(model="tiny", messages=ASKED, temperature=0, max_tokens=50)
            done.append(user)

    with ThreadPoolExecutor(48) as pool:
        with held(served):
            asked = [pool.submit(ask, "many") for _ in range(40)]
            until(lambda: served.turns.running + served.turns.waiting == 40)
            asked.append(pool.submit(ask, "one"))
            until(lambda: served.turns.running + served.turns.waiting == 41)
        for each in asked:
            each.result(60)
    assert len(done) == 41
    assert done.index("one") < 10


def test_a_client_with_too_many_requests_is_refused(folder: Path) -> None:
    with serving(folder, limits={"waiting_of_one": 4}) as running, ThreadPoolExecutor(4) as pool:
        served = served_of(running)
        with held(served), openai.OpenAI(base_url=f"http://{running.http}/v1", api_key="x", max_retries=0) as client:
            many = [pool.submit(_posted, running.http, body(max_tokens=9)) for _ in range(4)]
            until(lambda: served.turns.running + served.turns.waiting == 4)
            with pytest.raises(openai.RateLimitError, match="4 requests of this client wait") as raised:
                client.chat.completions.create(model="tiny", messages=ASKED)
            assert (raised.value.code, raised.value.type) == ("rate_limit_exceeded", "rate_limit_error")
            assert raised.value.response.headers["retry-after"] == "1"
        assert [one.result(60)[0] for one in many] == [200] * 4


def test_requests_are_refused_where_too_many_wait(tmp_path: Path) -> None:
    policy = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n"
    put_text(tmp_path, "tiny", config=policy + parameters(texts=1))
    with serving(tmp_path) as running, ThreadPoolExecutor(4) as pool:
        served = served_of(running)
        with held(served):
            many = [pool.submit(_posted, running.http, body(max_tokens=9)) for _ in range(2)]
            until(lambda: served.turns.running + served.turns.waiting == 2)
            for given in (body(), body(stream=True)):
                status, headers, found = _posted(running.http, given)
                assert (status, headers["retry-after"], found["error"]["type"]) == (503, "1", "server_error")
                assert "1 requests wait for it, and more may not" in found["error"]["message"]
        assert [one.result(60)[0] for one in many] == [200] * 2


def _posted(host: str, given: dict[str, Any]) -> tuple[int, Any, Any]:
    connection = HTTPConnection(host, timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(given), {"content-type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, answer.headers, found


def test_an_answer_that_takes_too_long_ends(folder: Path) -> None:
    with serving(folder, limits={"answer_s": 0.3}) as running:
        served = served_of(running)
        steps = served.writer._steps
        step = steps._step
        steps._step = lambda some: (time.sleep(0.02), step(some))[1]
        status, _, found = _posted(running.http, body())
        assert (status, found["error"]["type"]) == (504, "server_error")
        with openai.OpenAI(base_url=f"http://{running.http}/v1", api_key="x", max_retries=0) as client:
            events = client.chat.completions.create(stream=True, **body())
            with pytest.raises(openai.APIError, match="the answer was not there within"):
                for _ in events:
                    pass
        until(lambda: not served.turns.running and not served._open)


def test_a_model_that_fails_says_so_and_goes_on(server: Running, folder: Path) -> None:
    from tract_core.errors import RunError

    served = served_of(server)
    texts = served.writer._texts
    extend, calls = texts.extend, iter([True, True, False])

    def failing(parts: Any) -> Any:
        if not next(calls, True):
            raise RunError("the logits hold not-a-number", where="logits")
        return extend(parts)

    texts.extend = failing
    status, _, found = _posted(server.http, body(max_tokens=9))
    assert (status, found["error"]["type"]) == (500, "server_error")
    calls = iter([True, True, False])
    with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="x", max_retries=0) as client:
        with pytest.raises(openai.APIError, match="not-a-number"):
            list(client.chat.completions.create(stream=True, **body(max_tokens=9)))
        found = client.chat.completions.create(**body(max_tokens=9))
        alone = loaded(folder / "tiny" / "1" / "model.gguf").generate(ASKED, temperature=0, max_tokens=9)
        assert found.choices[0].message.content == alone.text


def test_texts_that_are_written_outlive_a_reload(server: Running, folder: Path) -> None:
    before = served_of(server)
    steps = before.writer._steps
    step = steps._step
    steps._step = lambda some: (time.sleep(0.002), step(some))[1]
    wanted = loaded(folder / "tiny" / "1" / "model.gguf").generate(ASKED, temperature=0, max_tokens=200).text
    with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="x", max_retries=0) as client:
        events = client.chat.completions.create(stream=True, **body(max_tokens=200))
        text = next(events).choices[0].delta.content or ""
        with ThreadPoolExecutor(1) as pool:
            whole = pool.submit(client.chat.completions.create, **body(max_tokens=200))
            until(lambda: before.turns.running == 2)
            server.call(server.server.serving.repository.load("tiny"))
            assert served_of(server) is not before
            text += "".join(one.choices[0].delta.content or "" for one in events)
            assert text == wanted == whole.result(60).choices[0].message.content
        found = client.chat.completions.create(**body(max_tokens=20))
        assert wanted.startswith(found.choices[0].message.content or "?")
    until(lambda: not [one.name for one in threading.enumerate() if one is steps._thread])
    with pytest.raises(RuntimeError, match="shutdown"):
        before._threads.submit(print)
