"""Models at URLs: of a server on the loopback address, and in the memory of fsspec."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from click.testing import CliRunner

import tract_core as tract
from tract_core.cli import app
from tract_core.errors import CorruptModel, InputError, LimitExceeded, MissingFile, ModelError, Unsupported
from tract_core.limits import LoadLimits
from tract_core.remote_files import downloads, fetched

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"
FACT: Any = {"image": "B,1,8,8,f32"}
DIGEST = hashlib.sha256(DIGITS.read_bytes()).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and notes for which it was asked."""

    asked: list[str] = []  # noqa: RUF012 - of all requests, each of which has a handler of its own

    def log_request(self, code: object = "-", size: object = "-") -> None:
        self.asked.append(f"{self.command} {self.path}")

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "served"
    folder.mkdir()
    shutil.copy(DIGITS, folder / "digits.onnx")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        Quiet.asked.clear()
        yield f"http://127.0.0.1:{there.server_port}"
        there.shutdown()


def test_a_model_at_a_url(server: str) -> None:
    wanted = tract.load(DIGITS, inputs=FACT).typed
    assert tract.load(f"{server}/digits.onnx", inputs=FACT).typed == wanted
    assert tract.onnx().load(f"{server}/digits.onnx").input_names() == ["image"]


def test_what_is_checked_is_fetched_once(server: str) -> None:
    url = f"{server}/digits.onnx#sha256={DIGEST}"
    first = fetched(url)
    Quiet.asked.clear()
    assert fetched(url.replace(DIGEST, DIGEST.upper())) == first
    assert not Quiet.asked
    first.write_bytes(b"something else")  # as a disk may do
    assert fetched(url).read_bytes() == DIGITS.read_bytes()


def test_another_content_than_was_promised(server: str) -> None:
    with pytest.raises(CorruptModel, match=f"its SHA-256 is {DIGEST}, wanted 0000"):
        fetched(f"{server}/digits.onnx#sha256={'0' * 64}")
    assert not [path for path in downloads().rglob("*") if path.is_file() and path.suffix == ".onnx"]


def test_a_file_is_fetched_again_once_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path / "cache"))
    memory, told = fsspec.filesystem("memory"), list[str]()
    memory.pipe("/model/a.onnx", b"first")
    assert fetched("memory://model/a.onnx", tell=told.append).read_bytes() == b"first"
    assert fetched("memory://model/a.onnx", tell=told.append).read_bytes() == b"first"
    (line,) = told
    assert line.startswith("fetched memory://model/a.onnx: 5 bytes; #sha256=")
    memory.pipe("/model/a.onnx", b"second")
    assert fetched("memory://model/a.onnx").read_bytes() == b"second"


def test_no_more_is_kept_than_the_cache_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TRACT_CACHE_SIZE", "2500")
    memory = fsspec.filesystem("memory")
    for place in range(4):
        memory.pipe(f"/many/{place}.onnx", bytes(1000))
        path = fetched(f"memory://many/{place}.onnx")
        os.utime(path, (place, place))
    kept = sorted(path.name for path in downloads().glob("*/*.onnx"))
    assert kept == ["2.onnx", "3.onnx"]


def test_without_a_cache_it_is_kept_for_the_process(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACT_CACHE", "0")
    assert fetched(f"{server}/digits.onnx").read_bytes() == DIGITS.read_bytes()


def test_limits(server: str, tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded, match="bytes"):
        tract.load(f"{server}/digits.onnx", inputs=FACT, limits=LoadLimits(max_bytes=1000))
    assert not [path for path in downloads().rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("SERVER/absent.onnx", MissingFile, "absent.onnx: there is no such file"),
        ("SERVER/", InputError, "wanted the URL of one file"),
        ("SERVER/..", InputError, "wanted the URL of one file"),
        ("SERVER/digits.onnx#sha256=12", InputError, "'12' is no SHA-256: wanted 64 hexadecimal digits"),
        ("http://host/a::SERVER/digits.onnx", InputError, "wanted the URL of one file"),
        ("http://127.0.0.1:9/a.onnx", ModelError, "cannot be fetched: .*onnect"),
        ("quantum://host/a.onnx", InputError, "Protocol not known: quantum"),
        ("s3://bucket/a.onnx", Unsupported, r"Install s3fs.*\n.*tract-core\[remote\]"),
    ],
)
def test_what_cannot_be_fetched(server: str, url: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tract.load(url.replace("SERVER", server))


class Cutting(Quiet):
    """Promises more than comes."""

    def end_headers(self) -> None:
        self._headers_buffer = [
            line.replace(b"Content-Length: ", b"Content-Length: 9") for line in getattr(self, "_headers_buffer", [])
        ]
        super().end_headers()


def test_a_download_that_is_cut_off(server: str, tmp_path: Path) -> None:
    serve = partial(Cutting, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        with pytest.raises(ModelError, match="cannot be fetched"):
            fetched(f"http://127.0.0.1:{there.server_port}/digits.onnx")
        there.shutdown()
    assert not [path for path in downloads().rglob("*") if path.is_file()]


def test_a_folder_of_downloads_that_cannot_be_made(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ModelError, match="cannot be fetched"):
        fetched(f"{server}/digits.onnx")


def test_nothing_is_written_to_a_url(server: str) -> None:
    model = tract.load(DIGITS, inputs=FACT)
    with pytest.raises(InputError, match="a path on this machine is wanted here, got a URL"):
        model.save(f"{server}/copy.onnx")


def test_the_command(server: str) -> None:
    line = [f"{server}/digits.onnx", "-i", "B,1,8,8,f32", "run", "-R", "--set", "B=2"]
    found = CliRunner().invoke(app, line)
    assert found.exit_code == 0, found.output
    assert f"#sha256={DIGEST}" in found.stderr
    missing = CliRunner().invoke(app, [f"{server}/absent.onnx"])
    assert (missing.exit_code, "there is no such file" in missing.output) == (1, True)
