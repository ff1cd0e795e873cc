"""Who reaches the server, and who may ask: addresses, TLS, tokens."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from servers import Running, identity, process, put, serving
from tract_serve.server import Server
from tract_serve.settings import Settings
from tract_serve.tokens import check_token
from tritonclient.grpc import service_pb2, service_pb2_grpc
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tract_core.errors import InputError

TOKENS = ("first-token", "zweites-Wort-ü")
GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}).encode()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    put(folder, "plain", identity())
    return folder


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    files = str(folder / "certificate.pem"), str(folder / "key.pem")
    about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*command, "-out", files[0], "-keyout", files[1], *about], check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def secured(models: Path, certificate: tuple[str, str]) -> Iterator[Running]:
    with serving(models, certificate=certificate[0], key=certificate[1], tokens=TOKENS) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(models: Path) -> Iterator[Running]:
    with serving(models, tokens=TOKENS) as running:
        yield running


def asked(
    connection: Any, path: str, body: bytes | None = None, authorization: bytes | None = None
) -> tuple[int, Any, Any]:
    headers = {} if authorization is None else {"Authorization": authorization}
    connection.request("GET" if body is None else "POST", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, json.loads(answer.read())


SHOWN: list[tuple[bytes | None, bool]] = [
    (None, False),
    (b"", False),
    (b"first-token", False),
    (b"Bearer", False),
    (b"Bearer ", False),
    (b"Bearer first-toke", False),
    (b"Bearer first-token2", False),
    (b"Bearer FIRST-TOKEN", False),
    (b"Basic first-token", False),
    (b"Bearer \xff\xfe", False),
    (b"Bearer " + b"x" * 5000, False),
    (b"Bearer first-token, Bearer x", False),
    (b"Bearer first-token", True),
    (b"bearer  first-token ", True),
    ("Bearer zweites-Wort-ü".encode(), True),
]


@pytest.mark.parametrize(("shown", "is_known"), SHOWN)
def test_tokens_over_http(guarded: Running, shown: bytes | None, is_known: bool) -> None:
    connection = http.client.HTTPConnection(guarded.http)
    for path, body in (("/v2", None), ("/v2/models/plain/infer", GOOD), ("/v2/repository/index", b""), ("/none", None)):
        status, headers, answer = asked(connection, path, body, shown)
        if is_known:
            assert status == (404 if path == "/none" else 200)
        else:
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert "the request shows no token that is known here" in answer["error"]
    connection.close()


def test_whoever_watches_over_the_server_needs_no_token(guarded: Running) -> None:
    connection = http.client.HTTPConnection(guarded.http)
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert asked(connection, path)[0] == 200
    connection.close()
    with grpc.insecure_channel(guarded.grpc) as channel:
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"") == b"\x08\x01"


@pytest.mark.parametrize(("shown", "is_known"), [one for one in SHOWN if one[0] is None or one[0].isascii()])
def test_tokens_over_grpc(guarded: Running, shown: bytes | None, is_known: bool) -> None:
    metadata = [] if shown is None else [("authorization", shown.decode().strip())]
    with grpc.insecure_channel(guarded.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        request = service_pb2.ModelInferRequest(model_name="none")
        for call in (
            lambda: stub.ServerLive(service_pb2.ServerLiveRequest(), metadata=metadata),
            lambda: stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(), metadata=metadata),
            lambda: next(stub.ModelStreamInfer(iter([request]), metadata=metadata)),
        ):
            if is_known:
                call()
                continue
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert "no token that is known here" in caught.value.details()


def test_tokens_over_websockets(guarded: Running) -> None:
    address = f"ws://{guarded.http}/v2/models/plain/stream"
    with pytest.raises(InvalidStatus) as caught:
        connect(address, additional_headers={"Authorization": "Bearer wrong"})
    assert caught.value.response.status_code == 401
    with connect(address) as connection:  # as browsers do, which can send no header: the first message shows it
        connection.send("{}")
        assert "no token that is known here" in json.loads(connection.recv(timeout=10))["error"]
    with connect(address) as connection:
        connection.send(bytes(8))
        assert "error" in json.loads(connection.recv(timeout=10))


def test_each_token_is_compared_and_none_sooner_than_another(monkeypatch: pytest.MonkeyPatch) -> None:
    import hmac

    seen: list[tuple[int, int]] = []
    known = hmac.compare_digest

    def compared(a: bytes, b: bytes) -> bool:
        seen.append((len(a), len(b)))
        return known(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compared)
    check_token(Settings(tokens=("a", "b" * 100, "c")), "Bearer a")
    assert seen == [(32, 32)] * 3


def test_tls_over_http(secured: Running, certificate: tuple[str, str]) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    connection = http.client.HTTPSConnection(secured.http, context=context)
    assert asked(connection, "/v2", authorization=b"Bearer first-token")[0] == 200
    assert asked(connection, "/v2")[0] == 401
    connection.close()
    with pytest.raises(ssl.SSLError):
        asked(http.client.HTTPSConnection(secured.http, context=ssl.create_default_context()), "/v2")
    with pytest.raises((http.client.HTTPException, OSError)):
        asked(http.client.HTTPConnection(secured.http), "/v2", authorization=b"Bearer first-token")


def test_tls_over_grpc(secured: Running, certificate: tuple[str, str]) -> None:
    credentials = grpc.ssl_channel_credentials(Path(certificate[0]).read_bytes())
    token = grpc.access_token_call_credentials("first-token")
    for given, code in (
        (grpc.composite_channel_credentials(credentials, token), None),
        (credentials, "UNAUTHENTICATED"),
    ):
        with grpc.secure_channel(secured.grpc, given) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            if code is None:
                assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
                continue
            with pytest.raises(grpc.RpcError) as caught:
                stub.ServerLive(service_pb2.ServerLiveRequest())
            assert caught.value.code().name == code
    for channel in (
        grpc.insecure_channel(secured.grpc),
        grpc.secure_channel(secured.grpc, grpc.ssl_channel_credentials()),
    ):
        with channel, pytest.raises(grpc.RpcError) as caught:
            service_pb2_grpc.GRPCInferenceServiceStub(channel).ServerLive(service_pb2.ServerLiveRequest(), timeout=10)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_clients_that_never_finish_the_handshake_are_left(models: Path, certificate: tuple[str, str]) -> None:
    with serving(models, certificate=certificate[0], key=certificate[1], limits={"read_s": 0.5}) as running:
        for address in (running.http, running.grpc):
            host, _, port = address.partition(":")
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall(b"\x16\x03\x01")
                assert connection.recv(100) == b""


def test_only_this_machine_reaches_it_unless_told(models: Path) -> None:
    with serving(models) as running:
        for address in (running.http, running.grpc):
            host, _, port = address.partition(":")
            assert host == "127.0.0.1"
            socket.create_connection((host, int(port)), timeout=5).close()
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.2", int(port)), timeout=5)


def test_others_may_not_change_it_unless_told(models: Path) -> None:
    with serving(models, host="0.0.0.0") as running:
        port, grpc_port = running.server.http_port, running.server.grpc_port
        connection = http.client.HTTPConnection("127.0.0.2", port)
        assert asked(connection, "/v2/models/plain/infer", GOOD)[0] == 200
        for path in (
            "/v2/repository/models/plain/load",
            "/v2/repository/models/plain/unload",
            "/v2/systemsharedmemory/region/a/register",
            "/v2/systemsharedmemory/unregister",
            "/v2/logging",
            "/v2/trace/setting",
        ):
            body = json.dumps(
                {"log_info": True, "trace_rate": "1"} if "/v2/sy" not in path else {"key": "a", "byte_size": 1}
            )
            if path == "/v2/logging":
                body = '{"log_info": true}'
            elif path == "/v2/trace/setting":
                body = '{"trace_rate": "1"}'
            status, _, answer = asked(connection, path, body.encode())
            assert (status, "start it with" in answer["error"]) == (403, True), path
        assert asked(connection, "/v2/logging")[0] == 200
        connection.close()
        with grpc.insecure_channel(f"127.0.0.2:{grpc_port}") as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            for call in (
                lambda: stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name="plain")),
                lambda: stub.SystemSharedMemoryRegister(
                    service_pb2.SystemSharedMemoryRegisterRequest(name="a", key="a")
                ),
            ):
                with pytest.raises(grpc.RpcError) as caught:
                    call()
                assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_pages_change_it_only_where_that_was_said(models: Path) -> None:
    for settings, status in (({}, 403), ({"control": True}, 200), ({"origins": ("https://mine.example",)}, 200)):
        with serving(models, **settings) as running:
            connection = http.client.HTTPConnection(running.http)
            connection.request("POST", "/v2/repository/models/plain/load", b"{}", {"Origin": "https://mine.example"})
            answer = connection.getresponse()
            assert answer.status == status, answer.read()
            connection.close()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"host": ""}, "host is empty"), ({"certificate": "a"}, "go together"), ({"key": "a"}, "go together")],
)
def test_settings_that_are_none(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Settings(**settings)


def test_a_certificate_that_is_none(models: Path, certificate: tuple[str, str], tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text("no certificate")
    for files in ((str(other), certificate[1]), (certificate[0], str(other)), (str(tmp_path / "none"), certificate[1])):
        with pytest.raises(InputError, match="cannot be used"):
            Server(models, Settings(certificate=files[0], key=files[1]))


def test_tokens_and_tls_from_the_command_line(models: Path, certificate: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("one\ntwo\n")
    options = ("--token-file", str(file), "--tls-certificate", certificate[0], "--tls-key", certificate[1])
    with process(models, *options) as running:
        context = ssl.create_default_context(cafile=certificate[0])
        connection = http.client.HTTPSConnection(running.http, context=context)
        assert asked(connection, "/v2", authorization=b"Bearer two")[0] == 200
        assert asked(connection, "/v2", authorization=b"Bearer three")[0] == 401
        connection.close()
        assert "two" not in running.log
