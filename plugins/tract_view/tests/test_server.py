"""Who gets the page: whoever knows the token, under the name of this machine, by GET. Nobody else."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator

import pytest
from tract_view.constants import ConstantTable
from tract_view.document import document_of
from tract_view.entries import entries_of
from tract_view.page import SCRIPTS
from tract_view.server import PageServer
from tract_view.snapshots import Snapshot
from viewed_models import chain

from tract_core.errors import InputError


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    constants = ConstantTable()
    entries = tuple(entries_of(chain("secret-name"), constants))
    document = document_of("model.onnx", [Snapshot("load", entries, {})], constants)
    with PageServer(document) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server: PageServer, path: str, method: str = "GET", host: str | None = "") -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_the_page_and_all_that_it_asks_for(server: PageServer) -> None:
    for name in ("", "view.css", *SCRIPTS, "summary.json", "constants.json", "stage-0.json"):
        status, headers, body = ask(server, f"/{server.token}/{name}")
        assert status == 200, name
        assert len(gzip.decompress(body)) > 2
        assert "script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
    assert "secret-name" in json.loads(gzip.decompress(ask(server, f"/{server.token}/stage-0.json")[2]))["texts"]


def test_nothing_without_the_token(server: PageServer) -> None:
    other = (f"/{server.token[:-1]}/", f"/{server.token}x/", f"/{server.token.swapcase()}/", f"/{server.token}")
    for path in ("/", "//", "/summary.json", "/x/summary.json", "/%00/", *other):
        status, _, body = ask(server, path)
        assert status == 404, path
        assert b"secret" not in body


@pytest.mark.parametrize("name", ["../server.py", "view.html", "stage-9.json", "%2e%2e/x", "?", "view.css/"])
def test_nothing_but_what_there_is(server: PageServer, name: str) -> None:
    assert ask(server, f"/{server.token}/{name}")[0] == 404


@pytest.mark.parametrize("host", [None, "evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "[::1]:80"])
def test_other_names_of_this_machine_are_refused(server: PageServer, host: str | None) -> None:
    status, _, body = ask(server, f"/{server.token}/summary.json", host=host)
    assert status == 403
    assert b"model.onnx" not in body


def test_localhost_is_this_machine(server: PageServer) -> None:
    assert ask(server, f"/{server.token}/", host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"])
def test_only_get(server: PageServer, method: str) -> None:
    status, headers, _ = ask(server, f"/{server.token}/summary.json", method)
    assert status == 501
    assert "Access-Control-Allow-Origin" not in headers


def test_only_this_machine_can_connect(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_tokens_differ_and_cannot_be_guessed(server: PageServer) -> None:
    with PageServer(document_of("m", [], ConstantTable())) as other:
        assert other.token != server.token
    assert len(server.token) >= 32
    assert server.url == f"http://127.0.0.1:{server.server_port}/{server.token}/"


def test_a_port_that_is_taken(server: PageServer) -> None:
    with pytest.raises(InputError, match=rf"--port {server.server_port}.*cannot be had"):
        PageServer(document_of("m", [], ConstantTable()), server.server_port)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0\0\0",
        b"GET",
        b"GET /\xc3\xa9/ HTTP/1.0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"x" * 100_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_disturbs_nobody(server: PageServer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65536):
            pass
    assert ask(server, f"/{server.token}/summary.json")[0] == 200
