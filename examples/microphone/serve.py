"""Serve the denoiser of `examples/streaming`, and beside it a page that sends it what a microphone hears.

``python examples/microphone/serve.py [PORT]``, then http://localhost:8000 in a browser.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from tract_serve import application

HERE = Path(__file__).parent
MODEL = HERE.parent / "streaming" / "denoise.onnx"

FILES = {
    "/": ("index.html", b"text/html; charset=utf-8"),
    "/page.mjs": ("page.mjs", b"text/javascript"),
    "/resample.mjs": ("resample.mjs", b"text/javascript"),
}

CONFIG = 'parameters { key: "pulse" value { string_value: "S=160" } }\n'
"""The model takes pulses of 160 samples, which are 20 ms."""


def put_model(folder: Path) -> None:
    """A repository of one model, ``denoise``."""
    place = folder / "denoise" / "1"
    place.mkdir(parents=True)
    shutil.copy(MODEL, place / "model.onnx")
    (folder / "denoise" / "config.pbtxt").write_text(CONFIG)


def with_page(models: Any) -> Any:
    """An application that shows the page, and hands everything else on to the one that serves models."""

    async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] not in FILES:
            await models(scope, receive, send)
            return
        name, kind = FILES[scope["path"]]
        headers = [(b"content-type", kind), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": (HERE / name).read_bytes()})

    return answer


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    with TemporaryDirectory() as folder:
        put_model(Path(folder))
        print(f"http://localhost:{port}", flush=True)
        uvicorn.run(with_page(application(folder)), port=port, ws="websockets-sansio", log_level="warning")


if __name__ == "__main__":
    main()
