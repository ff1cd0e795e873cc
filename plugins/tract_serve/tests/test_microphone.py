"""The page of `examples/microphone`: its resampler by itself; all of it in a browser, whose microphone is a file."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import wave
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest

import tract_core as tract

EXAMPLES = Path(__file__).parents[3] / "examples"
RATE, PULSE = 8000, 160

RESAMPLED = """
import { Resampler } from %s;
const [from, to, frequency] = process.argv.slice(2).map(Number), made = new Resampler(from, to), found = [];
for (let at = 0; at < from; at += 128) {
  const sine = (_, index) => Math.sin(2 * Math.PI * frequency * (at + index) / from);
  const piece = Float32Array.from({ length: 128 }, sine);
  found.push(...made.push(piece));
}
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


@pytest.mark.parametrize(
    "rates", [(48_000, 8000), (44_100, 8000), (8000, 48_000), (8000, 44_100), (8000, 8000)], ids=str
)
@pytest.mark.parametrize("frequency", [50, 1000, 3300])
def test_sound_at_another_rate_is_the_same_sound(node: str, rates: tuple[int, int], frequency: int) -> None:
    found = resampled(node, rates, frequency)
    assert abs(len(found) - rates[1]) < 0.03 * rates[1]
    time_ = np.arange(len(found)) / rates[1]
    wanted = np.sin(2 * np.pi * frequency * time_)
    middle = slice(len(found) // 10, -len(found) // 10)  # where it has begun, and the filter with it
    assert np.abs(found - wanted)[middle].max() < 0.01


@pytest.mark.parametrize("frequency", [4600, 5000, 11_000])
def test_what_the_lower_rate_cannot_hold_is_left_out(node: str, frequency: int) -> None:
    found = resampled(node, (48_000, 8000), frequency)
    assert np.abs(found[100:-100]).max() < 0.01  # a tone that begins at once has all frequencies for a moment


def resampled(node: str, rates: tuple[int, int], frequency: int) -> Any:
    """A second of a tone, in pieces, at another rate."""
    script = RESAMPLED % json.dumps((EXAMPLES / "microphone" / "resample.mjs").as_uri())
    command = [node, "--input-type=module", "-", *map(str, (*rates, frequency))]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout))


# In a browser


class Browser:
    """A browser that is driven by the protocol of WebDriver (W3C)."""

    def __init__(self, address: str, options: dict[str, Any]) -> None:
        self._address = address
        told = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self._session = f"/session/{told['sessionId']}"

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        asked = Request(self._address + path, content, headers, method=method)
        with urlopen(asked, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, address: str) -> None:
        self._ask("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": []})

    def wait(self, script: str, seconds: float = 30.0) -> None:
        """Return once what a script returns is true."""
        until = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < until, (script, self.run("return document.body.innerText"))
            time.sleep(0.1)

    def picture(self) -> bytes:
        return b64decode(self._ask("GET", f"{self._session}/screenshot"))

    def close(self) -> None:
        self._ask("DELETE", self._session)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@contextmanager
def program(*command: str) -> Iterator[None]:
    """A program that runs meanwhile."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        running.terminate()
        running.wait(20)


@contextmanager
def listening(port: int, *command: str) -> Iterator[None]:
    """A program that listens on a port."""
    with program(*command):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield


def melody(path: Path, rate: int = 48_000) -> None:
    """Six seconds of tones with noise on top, as a microphone would bring them."""
    numbers = np.random.default_rng(0)
    at = np.arange(6 * rate) / rate
    frequency = np.repeat([220.0, 330.0, 440.0, 262.0, 392.0, 294.0], rate)
    phase = 2 * np.pi * np.cumsum(frequency) / rate
    swell = np.clip(np.sin(np.pi * (at % 1.0)), 0, 1) * ((at % 1.0) < 0.6)
    sound = 0.35 * swell * (np.sin(phase) + 0.4 * np.sin(2 * phase)) + numbers.normal(scale=0.06, size=len(at))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


@pytest.mark.skipif("TRACT_LONG" not in os.environ, reason="takes half a minute")
def test_a_microphone_in_a_browser(tmp_path: Path) -> None:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromium-driver are not installed")
    melody(tmp_path / "melody.wav")
    page, drives = free_port(), free_port()
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
    arguments += ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", "--window-size=900,800"]
    arguments += [
        f"--use-file-for-fake-audio-capture={tmp_path / 'melody.wav'}",
        f"--user-data-dir={tmp_path / 'user'}",
    ]
    options = {"browserName": "chrome", "goog:chromeOptions": {"binary": chromium, "args": arguments}}
    with (
        listening(page, sys.executable, str(EXAMPLES / "microphone" / "serve.py"), str(page)),
        listening(drives, driver, f"--port={drives}"),
    ):
        browser = Browser(f"http://127.0.0.1:{drives}", options)
        try:
            browser.open(f"http://localhost:{page}/")
            browser.run("document.getElementById('button').click()")
            browser.wait("return document.body.dataset.state === 'listening'")
            browser.wait(f"return recording('after').length > {5 * RATE}")
            picture = browser.picture()
            browser.run("document.getElementById('button').click()")
            browser.wait("return document.body.dataset.state === 'ended'")
            before, after = (np.array(browser.run(f"return recording('{name}')")) for name in ("before", "after"))
            said = browser.run("return document.getElementById('said').textContent")
        finally:
            browser.close()
    if folder := os.environ.get("TRACT_PICTURES"):
        (Path(folder) / "microphone.png").write_bytes(picture)
    before, after = before.astype(np.float32), after.astype(np.float32)
    np.testing.assert_array_equal(after, streamed(before))  # bit for bit, to the last sample
    assert said == f"{len(before) / RATE:g} seconds came in, and {len(after) / RATE:g} seconds came out."
    tenths = [x[: len(x) // 800 * 800].reshape(-1, 800) for x in (before, after)]
    quiet = np.abs(tenths[0]).mean(1).argsort()[:5]
    power = [np.square(one[quiet]).mean() for one in tenths]
    assert power[1] < power[0] / 10  # between the tones, noise is all there is
    assert np.square(before).mean() > 1e-3  # and there was something to hear


@pytest.mark.skipif("TRACT_LONG" not in os.environ, reason="starts two programs")
def test_a_file_without_a_browser(tmp_path: Path) -> None:
    melody(tmp_path / "noisy.wav", RATE)
    page, example = free_port(), EXAMPLES / "microphone"
    with listening(page, sys.executable, str(example / "serve.py"), str(page)):
        address = f"ws://localhost:{page}/v2/models/denoise/stream"
        command = [sys.executable, str(example / "client.py"), "noisy.wav", "clean.wav", address]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    noisy, clean = (samples(tmp_path / name) for name in ("noisy.wav", "clean.wav"))
    wanted = streamed(noisy.astype(np.float32) / 32768)
    np.testing.assert_array_equal(clean, np.clip(np.rint(wanted * 32768), -32768, 32767).astype(np.int16))


def samples(path: Path) -> Any:
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def streamed(sound: Any) -> Any:
    """What the denoiser gives for the whole sound, in pulses."""
    model = tract.load(EXAMPLES / "streaming" / "denoise.onnx")
    model.transform(tract.Pulse(PULSE, symbol="S"))
    pieces = model.into_runnable().stream([sound[None, None]])
    return np.concatenate([np.asarray(piece) for piece in pieces], 2)[0, 0]
