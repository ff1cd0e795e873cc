"""Releases of the engine's command, from a server on the loopback address."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tract_torch.established.download
from tract_torch.errors import DownloadError
from tract_torch.established.download import TractBinaryDownloader

from tract_core.errors import InputError, Unsupported

COMMAND = b"#!/bin/sh\necho 'tract 0.23.9'\n"


def packed(**members: Any) -> bytes:
    """A compressed tar file: contents by name, or whole entries."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, target
    return found


class Server:
    """``files``: by path, a content or a function that answers. ``asked``: the paths, in order."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | Callable[[Any], None]] = {}
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                found = server.files.get(self.path)
                if callable(found):
                    found(self)
                    return
                self.send_response(200 if found is not None else 404)
                self.send_header("Content-Length", str(len(found or b"")))
                self.end_headers()
                self.wfile.write(found or b"")

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()


@pytest.fixture
def server() -> Generator[Server]:
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()
    found.thread.join()


@pytest.fixture(autouse=True)
def triple(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


NAME = "tract-x86_64-unknown-linux-musl-0.23.9.tgz"
GOOD = packed(**{"tract-x86_64-unknown-linux-musl-0.23.9/tract": COMMAND})


def downloader(server: Server, tmp_path: Path, **options: Any) -> TractBinaryDownloader:
    return TractBinaryDownloader("0.23.9", base_url=server.url, cache=tmp_path, **options)


def left(tmp_path: Path) -> list[str]:
    """The files in the cache but for the lock."""
    return sorted(path.name for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock")


def test_a_release(server: Server, tmp_path: Path) -> None:
    server.files = {
        f"/0.23.9/{NAME}": GOOD,
        f"/0.23.9/{NAME}.sha256": f"{hashlib.sha256(GOOD).hexdigest()}  {NAME}\n".encode(),
    }
    found = downloader(server, tmp_path)
    assert server.asked == []  # not by the constructor
    assert found.tract_path == tmp_path / "0.23.9" / "tract"
    assert subprocess.run([found.tract_path], capture_output=True, check=True).stdout == b"tract 0.23.9\n"
    count = len(server.asked)
    assert downloader(server, tmp_path).tract_path.is_file()
    found.dl_tract()
    assert len(server.asked) == count
    assert left(tmp_path) == ["tract"]


def test_it_is_downloaded_only_where_that_was_asked(server: Server, tmp_path: Path) -> None:
    server.files = {f"/0.23.9/{NAME}": GOOD}
    found = downloader(server, tmp_path, auto_download=False)
    with pytest.raises(DownloadError, match=r"(?s)it was not downloaded yet.*dl_tract\(\) does it"):
        assert found.tract_path
    assert server.asked == []
    found.dl_tract()
    assert found.tract_path.read_bytes() == COMMAND


def test_the_tag_may_have_a_v(server: Server, tmp_path: Path) -> None:
    server.files = {f"/v0.23.9/{NAME}": GOOD}
    assert downloader(server, tmp_path).tract_path.is_file()
    assert server.asked[:2] == [f"/0.23.9/{NAME}", f"/v0.23.9/{NAME}"]


def test_no_such_release(server: Server, tmp_path: Path) -> None:
    with pytest.raises(
        DownloadError, match=r"there is no tract-x86_64-\S+tgz in the release 0\.23\.9, nor in v0\.23\.9"
    ):
        downloader(server, tmp_path).dl_tract()
    assert left(tmp_path) == []


def test_a_wrong_checksum(server: Server, tmp_path: Path) -> None:
    server.files = {f"/0.23.9/{NAME}": GOOD, f"/0.23.9/{NAME}.sha256": b"0" * 64}
    with pytest.raises(DownloadError, match=r"its SHA-256 is [0-9a-f]{64}, wanted 000"):
        downloader(server, tmp_path).dl_tract()
    assert left(tmp_path) == []
    right = hashlib.sha256(GOOD).hexdigest().upper()
    downloader(server, tmp_path, sha256=right).dl_tract()  # what the caller says comes before what the server does
    server.files[f"/0.23.9/{NAME}.sha256"] = b"nonsense"
    with pytest.raises(DownloadError, match="there is no checksum in it"):
        downloader(server, tmp_path / "other").dl_tract()


def test_a_connection_that_ends_too_early(server: Server, tmp_path: Path) -> None:
    def cut(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(GOOD)))
        handler.end_headers()
        handler.wfile.write(GOOD[:50])

    server.files = {f"/0.23.9/{NAME}": cut}
    with pytest.raises(DownloadError, match=r"the connection ended after 50 of \d+ bytes"):
        downloader(server, tmp_path).dl_tract()
    assert left(tmp_path) == []


def test_a_server_that_fails(server: Server, tmp_path: Path) -> None:
    server.files = {f"/0.23.9/{NAME}": lambda handler: handler.send_error(503)}
    with pytest.raises(DownloadError, match="the server says 503"):
        downloader(server, tmp_path).dl_tract()
    server.files = {f"/0.23.9/{NAME}": lambda handler: handler.wfile.write(b"no answer at all\r\n\r\n")}
    with pytest.raises(DownloadError, match="it cannot be read"):
        downloader(server, tmp_path).dl_tract()
    with pytest.raises(DownloadError, match="it cannot be read"):
        TractBinaryDownloader("0.23.9", base_url="http://127.0.0.1:1", cache=tmp_path).dl_tract()


@pytest.mark.parametrize("begins", [False, True])
def test_a_slow_server(server: Server, tmp_path: Path, begins: bool) -> None:
    done = threading.Event()

    def slow(handler: Any) -> None:
        if begins:
            handler.send_response(200)
            handler.end_headers()
        while begins and not done.wait(0.05):
            handler.wfile.write(b"x")  # each piece comes in time, the whole never
        done.wait(5)

    server.files = {f"/0.23.9/{NAME}": slow}
    began = time.monotonic()
    with pytest.raises(DownloadError, match="it takes too long"):
        downloader(server, tmp_path, timeout=0.4).dl_tract()
    assert time.monotonic() - began < 3
    done.set()


def test_a_file_that_is_too_large(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files = {f"/0.23.9/{NAME}": GOOD}
    monkeypatch.setattr(tract_torch.established.download, "LARGEST_BINARY", 10)
    with pytest.raises(DownloadError, match=f"'[^']*tract' has {len(COMMAND)} bytes"):
        downloader(server, tmp_path).dl_tract()
    monkeypatch.setattr(tract_torch.established.download, "LARGEST", 20)
    with pytest.raises(DownloadError, match="it has more than 20 bytes"):
        downloader(server, tmp_path).dl_tract()
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (packed(**{"../tract": COMMAND}), r"it holds '../tract', wanted one plain file"),
        (packed(**{"/tmp/tract": COMMAND}), r"it holds '/?tmp/tract', wanted one plain file"),
        (packed(tract=entry("tract", tarfile.SYMTYPE, "/bin/sh")), "it holds 'tract', wanted one plain file"),
        (packed(tract=entry("tract", tarfile.LNKTYPE, "/bin/sh")), "it holds 'tract', wanted one plain file"),
        (packed(tract=entry("tract", tarfile.FIFOTYPE)), "it holds 'tract', wanted one plain file"),
        (packed(**{"a/tract": COMMAND, "b/tract": COMMAND}), "it holds several files, wanted one"),
        (packed(other=COMMAND), "it holds 'other', wanted one plain file"),
        (packed(), "it holds no file 'tract'"),
        (GOOD[:-30], "it is no compressed tar file"),
        (b"<html>", "it is no compressed tar file"),
    ],
    ids=["above", "absolute", "link", "hard link", "pipe", "several", "other", "nothing", "cut", "page"],
)
def test_what_is_in_it_is_one_plain_file(server: Server, tmp_path: Path, content: bytes, problem: str) -> None:
    server.files = {f"/0.23.9/{NAME}": content}
    with pytest.raises(DownloadError, match=problem):
        downloader(server, tmp_path).dl_tract()
    assert left(tmp_path) == []


def test_two_processes_at_once_download_it_once(server: Server, tmp_path: Path) -> None:
    def late(handler: Any) -> None:
        time.sleep(0.5)
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(GOOD)

    server.files = {f"/0.23.9/{NAME}": late}
    code = (
        "import platform, sys; from tract_torch.established.download import TractBinaryDownloader\n"
        "platform.system, platform.machine = lambda: 'Linux', lambda: 'x86_64'\n"
        "print(TractBinaryDownloader('0.23.9', base_url=sys.argv[1], cache=sys.argv[2]).tract_path.read_text())"
    )
    words = [sys.executable, "-c", code, server.url, str(tmp_path)]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(3)]
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert all(text.strip() == COMMAND.strip() for text in said)
    assert server.asked.count(f"/0.23.9/{NAME}") == 1


def test_another_process_that_never_ends(server: Server, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    server.files = {f"/0.23.9/{NAME}": GOOD}
    (tmp_path / "0.23.9").mkdir()
    with (tmp_path / "0.23.9" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DownloadError, match="another process downloads it"):
            downloader(server, tmp_path, timeout=0.2).dl_tract()
    assert server.asked == []


@pytest.mark.parametrize(
    ("system", "machine", "triple"),
    [
        ("Linux", "aarch64", "aarch64-unknown-linux-musl"),
        ("Darwin", "x86_64", "x86_64-apple-darwin"),
        ("Darwin", "arm64", "aarch64-apple-darwin"),
    ],
)
def test_machines(monkeypatch: pytest.MonkeyPatch, system: str, machine: str, triple: str) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert TractBinaryDownloader("0.22.1").arch == triple


def test_machines_without_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Windows")
    with pytest.raises(Unsupported, match="there are no releases of tract for Windows on x86_64"):
        TractBinaryDownloader("0.22.1").dl_tract()


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACT_CACHE", str(tmp_path))
    assert TractBinaryDownloader("0.22.1").folder == tmp_path / "tract-releases" / "0.22.1"
    with pytest.raises(InputError, match="is no version"):
        TractBinaryDownloader("../../x")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners of this kind here")
def test_nothing_is_run_that_others_may_have_written(tmp_path: Path) -> None:
    downloader = TractBinaryDownloader("0.22.1", auto_download=False, cache=tmp_path)
    downloader.folder.mkdir()
    file = downloader.folder / "tract"
    file.write_bytes(COMMAND)
    file.chmod(0o755)
    assert downloader.tract_path == file
    for place in (file, downloader.folder, tmp_path):
        mode = place.stat().st_mode
        place.chmod(0o777)
        with pytest.raises(DownloadError, match=f"(?s){place}: others may write to it .its mode is 0777.*chmod go-w"):
            _ = downloader.tract_path
        with pytest.raises(DownloadError, match="others may write"):
            downloader.dl_tract()
        place.chmod(mode)
    assert downloader.tract_path == file
