"""What workers of Ray run in the tests: they import it by its name."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 20


def rows_of(ids: np.ndarray, width: int = 8) -> np.ndarray:
    """Rows of random numbers, the same each time, by the id of the first."""
    return np.random.default_rng(int(ids[0])).standard_normal((len(ids), width)).astype(np.float32)


def generated(batch: dict[str, Any]) -> dict[str, Any]:
    """Ids become rows."""
    return {"id": batch["id"], "x": rows_of(batch["id"])}


KILLED = "TRACT_RAY_TEST_KILLED"
"""The variable that names the file which is there once somebody was killed."""


def waiting(rows: int, seconds: float) -> None:
    """As progress: the work goes on when somebody was killed, or after two seconds."""
    end = time.monotonic() + 2
    while time.monotonic() < end and not Path(os.environ[KILLED]).exists():
        time.sleep(0.03)


def workers_of(raylet: int) -> list[int]:
    """The processes of actors that score, which a node has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            line = (folder / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == raylet and line.startswith(b"ray::MapWorker"):
            found.append(int(folder.name))
    return found


def application(text: str) -> Any:
    """An application of ASGI that answers every request with a text, once it has been told to start."""
    started = []

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            started.append((await receive())["type"])
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = f"{text} {scope['path']} {started} {os.getpid()}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": body})

    return answer
