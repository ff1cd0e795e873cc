"""Servers that documents start by ``tract serve PATH &``, on ports that are free, and the lines that ask them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from shutil import which
from typing import Any

PATIENCE_S = 60.0
DEFAULT = {"http_port": 8000, "grpc_port": 8001}


class Servers:
    """Those of one document. ``of_ports``: what stands in the place of the ports that it names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self.of_ports: dict[str, str] = {}

    def start(self, line: str) -> None:
        """Start one, and return once it is ready."""
        words = shlex.split(line.removesuffix("&"))[1:]
        log = self._folder / f"serve_{len(self._running)}.log"
        named = {
            name: words[words.index(flag) + 1] if (flag := f"--{name.replace('_', '-')}") in words else str(default)
            for name, default in DEFAULT.items()
        }
        command = [sys.executable, "-m", "tract_core", *words, "--log-json", "--http-port", "0", "--grpc-port", "0"]
        with log.open("wb") as file:
            self._running.append(subprocess.Popen(command, stderr=file, cwd=self._folder))
        ready = self._ready(log, self._running[-1])
        self.of_ports |= {f"localhost:{port}": f"127.0.0.1:{ready[name]}" for name, port in named.items()}

    def _ready(self, log: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and process.poll() is None:
            for line in log.read_text().splitlines():
                if '"server.ready"' in line:
                    return json.loads(line)
            time.sleep(0.05)
        raise AssertionError(f"the server did not start: {log.read_text()}")

    def said(self, text: str) -> str:
        """A text of the document, with the ports that there are."""
        for named, port in self.of_ports.items():
            text = text.replace(named, port)
        return text

    def ask(self, line: str) -> None:
        """Run a line of ``curl``, which is to get an answer that is no error."""
        if which("curl") is None:
            return
        options = {"shell": True, "cwd": self._folder, "capture_output": True, "timeout": 60}
        done = subprocess.run(self.said(line), check=False, **options)
        assert done.returncode == 0, f"$ {line}\n{done.stderr.decode()}"
        assert b'"error"' not in done.stdout, f"$ {line}\n{done.stdout.decode()}"

    def end(self) -> None:
        """End them all."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait(PATIENCE_S)
