"""Sounds of this example: made by a formula, and read from and written to WAV files."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

RATE = 8000
"""Samples per second."""

Samples = np.ndarray[tuple[int], np.dtype[np.float32]]


def clean(seconds: float, random: np.random.Generator) -> Samples:
    """A melody: tones and chirps with overtones, one after the other, with silence between some of them."""
    pieces, left = list[Samples](), int(seconds * RATE)
    while left > 0:
        count = min(left, int(random.uniform(0.1, 0.4) * RATE))
        pieces.append(_note(count, random) if random.random() < 0.75 else np.zeros(count, np.float32))
        left -= count
    return np.concatenate(pieces)


def _note(count: int, random: np.random.Generator) -> Samples:
    start = 110 * 2 ** random.uniform(0, 3)
    end = start * random.choice([1.0, 1.0, 1.5, 2.0])
    phase = 2 * np.pi * np.cumsum(np.geomspace(start, end, count)) / RATE
    strengths = random.uniform(0, 1, 4) / np.arange(1, 5)
    tone = sum(strength * np.sin((1 + index) * phase) for index, strength in enumerate(strengths))
    swell = np.sin(np.pi * np.linspace(0, 1, count)) ** 0.5
    return (0.5 * tone * swell / max(float(np.abs(tone).max()), 1e-3)).astype(np.float32)


def noisy(samples: Samples, random: np.random.Generator, level: float = 0.1) -> Samples:
    """With a hiss on top. ``level``: the standard deviation of the noise."""
    return (samples + random.normal(scale=level, size=samples.shape)).astype(np.float32)


def read(path: Path) -> Samples:
    """The first channel of a WAV file of 16 bits, whose rate has to be `RATE`. Raises ValueError for any other."""
    with wave.open(str(path)) as file:
        channels, width, rate, count = file.getparams()[:4]
        if (width, rate) != (2, RATE):
            raise ValueError(f"{path} has {8 * width} bits at {rate} Hz, wanted 16 bits at {RATE} Hz")
        return np.frombuffer(file.readframes(count), "<i2")[::channels].astype(np.float32) / 32768


def write(path: Path, samples: Samples) -> None:
    """A WAV file with one channel of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
