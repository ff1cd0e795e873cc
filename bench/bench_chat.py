"""The chat of the server under one client and under several: ``python bench/bench_chat.py [--clients 8] [--threads 1]``

The network is that of ``bench_language.py``, with a vocabulary of bytes. ``tract serve`` is a process of its own, and
so are the clients, each of which asks for answers of 64 tokens as soon as it has the one before, as events. One client
and several take turns, a second or so each, so that what else the machine does hits both alike. Printed are the medians
of tokens a second, the median of the ratios of neighbouring turns, how long the first token of a prompt of 1,000 tokens
takes when it is new and when it comes again, and how many steps of one token that is; and how long a client waits for
an answer alone, and while another one has 100 requests there.

``--url`` measures a server of whoever, as that of llama.cpp, with ``--model`` as the name of its model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench_language import LARGE, SMALL, network

ANSWER: Final = 64
PROMPT: Final = 1000
WORDS: Final = "Tell me of the weather, of the wind and of the sea. "

CLIENT: Final = """
import json, sys
from http.client import HTTPConnection
host, port, body = json.loads(sys.argv[1])
connection = HTTPConnection(host, port)
for line in sys.stdin:
    tokens = 0
    for _ in range(int(line)):
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        tokens += json.loads(content.split(b"data: ")[-2])["usage"]["completion_tokens"]
    print(tokens, flush=True)
"""


def repository(folder: Path, weights: str, *, large: bool) -> Path:
    """A repository with the network, whose tokens are bytes, and none of which ends an answer."""
    place = folder / "language" / "1"
    place.mkdir(parents=True)
    (place / "model.gguf").symlink_to(network(weights, LARGE if large else SMALL).resolve())
    letters = [chr(code) if 33 <= code < 127 else chr(256 + code) for code in range(256)]
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False},
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": {one: code for code, one in enumerate(letters)},
            "unk_token": letters[0],
        },
    }
    (place / "tokenizer.json").write_text(json.dumps(tokenizer))
    (place / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    (place / "config.json").write_text(json.dumps({"max_position_embeddings": 2048}))
    return folder


@contextmanager
def served(folder: Path, threads: int) -> Generator[tuple[str, int]]:
    """Where the server of a repository listens."""
    command = [sys.executable, "-m", "tract_core", "serve", str(folder), "--http-port", "0", "--grpc-port", "-1"]
    log = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115 - closed below
    process = subprocess.Popen([*command, "--log-json", "--threads", str(threads)], stderr=log, stdout=log)
    try:
        while process.poll() is None:
            events = [json.loads(line) for line in Path(log.name).read_text().splitlines() if line.startswith("{")]
            ready = [one for one in events if one["event"] == "server.ready"]
            if ready:
                failed = [one["error"] for one in events if one["event"] == "model.failed"]
                if failed:
                    raise SystemExit(failed[0])
                yield "127.0.0.1", ready[0]["http_port"]
                return
            time.sleep(0.1)
        raise SystemExit(Path(log.name).read_text())
    finally:
        process.terminate()
        process.wait(60)
        log.close()


def body_of(model: str, text: str, **more: Any) -> dict[str, Any]:
    """A request for an answer."""
    events = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": ANSWER}
    return {"model": model, "messages": [{"role": "user", "content": text}], **events, **more}


class Clients:
    """Some clients, each a process that asks as often as a line of its input says."""

    def __init__(self, place: tuple[str, int], model: str, count: int) -> None:
        self._all = [self._started(place, body_of(model, f"{number} {WORDS}")) for number in range(count)]

    @staticmethod
    def _started(place: tuple[str, int], body: dict[str, Any]) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CLIENT, json.dumps([*place, body])]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rate(self, count: int, requests: int) -> float:
        """Tokens a second of the first ``count`` clients, with so many requests each."""
        begun = time.perf_counter()
        for one in self._all[:count]:
            assert one.stdin is not None
            one.stdin.write(f"{requests}\n")
            one.stdin.flush()
        tokens = 0
        for one in self._all[:count]:
            assert one.stdout is not None
            tokens += int(one.stdout.readline())
        return tokens / (time.perf_counter() - begun)

    def end(self) -> None:
        """They leave."""
        for one in self._all:
            one.terminate()
            one.wait()


def first_token(place: tuple[str, int], body: dict[str, Any]) -> tuple[float, float]:
    """Seconds to the first piece of an answer, and for each of the others."""
    connection = HTTPConnection(*place)
    begun = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    first, pieces = 0.0, 0
    while line := answer.readline():
        if line.startswith(b"data: {"):
            choices = json.loads(line[6:])["choices"]
            if choices and choices[0]["delta"].get("content"):
                first, pieces = first or time.perf_counter() - begun, pieces + 1
    whole = time.perf_counter() - begun
    connection.close()
    return first, (whole - first) / max(1, pieces - 1)


def fairness(place: tuple[str, int], model: str) -> tuple[float, float]:
    """Seconds for an answer alone, and while another client has 100 requests there."""
    mine = body_of(model, f"mine {WORDS}", user="a", max_tokens=32)
    alone = statistics.median(_whole(place, mine) for _ in range(3))
    theirs = body_of(model, f"theirs {WORDS}", user="b")
    threads = [threading.Thread(target=_whole, args=(place, theirs)) for _ in range(100)]
    for one in threads:
        one.start()
    time.sleep(1)
    beside = statistics.median(_whole(place, mine) for _ in range(3))
    for one in threads:
        one.join()
    return alone, beside


def _whole(place: tuple[str, int], body: dict[str, Any]) -> float:
    begun = time.perf_counter()
    first_token(place, body)
    return time.perf_counter() - begun


def measure(place: tuple[str, int], model: str, asked: argparse.Namespace) -> None:
    """Print all of it."""
    clients = Clients(place, model, asked.clients)
    clients.rate(asked.clients, 1)
    alone, together = list[float](), list[float]()
    for _ in range(asked.rounds):
        alone.append(clients.rate(1, 4))
        together.append(clients.rate(asked.clients, 1))
    clients.end()
    ratio = statistics.median(b / a for a, b in zip(alone, together, strict=True))
    print(f"one client: {statistics.median(alone):.1f} tokens a second; {asked.clients} clients: ", end="")
    print(f"{statistics.median(together):.1f}; ratio {ratio:.2f}")
    new, again, steps = list[float](), list[float](), list[float]()
    for number in range(asked.rounds):
        body = body_of(model, f"{number} {WORDS * 40}"[: PROMPT - 20], max_tokens=16)
        new.append(first_token(place, body)[0])
        first, step = first_token(place, body)
        again.append(first)
        steps.append(first / step)
    print(f"the first token of a prompt of {PROMPT}: new {statistics.median(new) * 1e3:.0f} ms, again ", end="")
    print(f"{statistics.median(again) * 1e3:.1f} ms, {statistics.median(steps):.2f} steps")
    single, beside = fairness(place, model)
    print(f"an answer of 32 tokens: alone {single * 1e3:.0f} ms, beside 100 requests of another {beside * 1e3:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="q4_0", help="q4_0, q4_1, q5_0, q5_1, q8_0, f16, bf16 or f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--url", help="a server that is there, as http://127.0.0.1:8080")
    parser.add_argument("--model", default="language")
    asked = parser.parse_args()
    if asked.url:
        found = urlsplit(str(asked.url))
        measure((found.hostname or "127.0.0.1", found.port or 80), asked.model, asked)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        served(repository(Path(folder), asked.weights, large=asked.large), asked.threads) as place,
    ):
        measure(place, "language", asked)


if __name__ == "__main__":
    main()
