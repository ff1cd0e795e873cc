"""Take the noise out of a sound while it comes in: cook the network, let it take pulses, run it chunk by chunk.

``make demo-streaming`` sets everything up and runs this. A WAV file of your own (8000 Hz, 16 bits) can be named.
"""

from __future__ import annotations

import sys
import time
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from picture import tracks
from rich.console import Console
from sound import RATE, Samples, clean, noisy, read, write

import tract_core as tract

MODEL = Path(__file__).with_name("denoise.onnx")
RESULTS = Path(__file__).with_name("results")
PULSE = 128
"""Samples that the network takes at a time: 16 ms."""
CHUNK = 100
"""Samples that the sound card brings at a time. The stream makes pulses of them."""


def main() -> int:
    console = Console(highlight=False)
    RESULTS.mkdir(exist_ok=True)
    random = np.random.default_rng(7)
    sound = None if len(sys.argv) > 1 else clean(4.0, random)
    try:
        hissing = read(Path(sys.argv[1])) if sound is None else noisy(sound, random)
    except (OSError, EOFError, ValueError, wave.Error) as error:
        console.print(f"[red]{error}[/red]")
        return 2
    whole = tract.load(MODEL)
    wanted = whole.clone().into_runnable().run([hissing[None, None]])[0].to_numpy()[0, 0]

    model = whole
    model.transform(tract.Pulse(PULSE, symbol="S"))
    delay = int(model.property("pulse.delay").to_numpy()[0])
    model.save(RESULTS / "denoise.nnef.tgz")
    runnable = tract.load(RESULTS / "denoise.nnef.tgz").into_runnable()
    found, seconds = streamed(runnable, hissing)

    write(RESULTS / "noisy.wav", hissing)
    write(RESULTS / "clean.wav", found)
    named = {"with noise": hissing, "whole at once": wanted, "streamed": found, "difference": found - wanted}
    (RESULTS / "streamed.svg").write_text(tracks(named))
    report(console, delay, seconds, len(hissing))
    if sound is not None:
        gain = 10 * np.log10(np.mean((hissing - sound) ** 2) / np.mean((found - sound) ** 2))
        console.print(f"the noise is weaker by [bold]{gain:.1f} dB[/bold]")
    largest = float(np.abs(found - wanted).max()) if found.shape == wanted.shape else np.inf
    console.print(f"streamed and whole: {found.size} and {wanted.size} samples, largest difference {largest:.1e}")
    console.print(f"listen to [bold]noisy.wav[/bold] and [bold]clean.wav[/bold] in {RESULTS}, look at streamed.svg")
    return 0 if largest < 1e-5 else 1


def chunks(samples: Samples) -> Iterator[np.ndarray]:
    """The sound as a sound card brings it: batch, channel, samples; the last chunk may be short."""
    for start in range(0, len(samples), CHUNK):
        yield samples[None, None, start : start + CHUNK]


def streamed(runnable: tract.Runnable, samples: Samples) -> tuple[Samples, float]:
    """What comes out, and how long it took, in seconds."""
    start = time.perf_counter()
    pieces = [piece.to_numpy()[0, 0] for piece in runnable.stream(chunks(samples))]
    return np.concatenate(pieces), time.perf_counter() - start


def report(console: Console, delay: int, seconds: float, count: int) -> None:
    pulses = -(-count // PULSE)
    console.print(f"the network takes {PULSE} samples at a time, which are {PULSE / RATE * 1e3:.0f} ms of sound")
    console.print(f"its output comes [bold]{delay} samples[/bold] later: {delay / RATE * 1e3:.1f} ms")
    share = seconds / (count / RATE)
    console.print(f"a pulse takes [bold]{seconds / pulses * 1e6:.0f} µs[/bold], {share:.2%} of the time that it lasts")


if __name__ == "__main__":
    sys.exit(main())
