"""What a model of speech is given of sound: how loud bands of frequencies are, on the scale of mels, over time.

As of Whisper (Radford et al., arXiv:2212.04356): windows of Hann, bands of Slaney's Auditory Toolbox (1998), each of
the same area, and the logarithm to base 10, of which what is 8 below the loudest is cut off.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_transformers.audio.waves import Samples

_QUIETEST: Final = 1e-10
_RANGE: Final = 8.0
"""Below the loudest, in tens: what is quieter counts as that."""


@frozen
class FrontEnd:
    """``bands``: how many. ``rate``: samples a second. ``window``, ``step``: samples of a window, and between two.

    ``seconds``: of sound that the model is given at once.
    """

    bands: int = 80
    rate: int = 16000
    window: int = 400
    step: int = 160
    seconds: int = 30

    @property
    def samples(self) -> int:
        """Of what the model is given at once."""
        return self.seconds * self.rate

    @property
    def frames(self) -> int:
        """Of the spectrum of that."""
        return self.samples // self.step

    def features(self, samples: Samples) -> npt.NDArray[np.float32]:
        """The spectrum [1,bands,frames] of up to `samples` samples; what is missing is silence."""
        half = self.window // 2
        padded = np.zeros(self.samples, np.float64)
        padded[: len(samples)] = samples[: self.samples]
        padded = np.pad(padded, half, mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.window)[:: self.step][: self.frames]
        turning = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.window) / self.window)
        power = np.abs(np.fft.rfft(windows * turning, axis=1)) ** 2
        loud = np.log10(np.maximum(power @ mel_bands(self.bands, self.rate, self.window), _QUIETEST)).T
        return ((np.maximum(loud, loud.max() - _RANGE) + 4) / 4).astype(np.float32)[None]


@cache
def mel_bands(bands: int, rate: int, window: int) -> npt.NDArray[np.float64]:
    """How much of each frequency is in each band, [frequencies,bands]: triangles between neighbours on that scale."""
    ends = _hertz(np.linspace(0, _mels(rate / 2), bands + 2))
    found = np.linspace(0, rate / 2, 1 + window // 2)[:, None]
    rising = (found - ends[:-2]) / (ends[1:-1] - ends[:-2])
    falling = (ends[2:] - found) / (ends[2:] - ends[1:-1])
    return np.maximum(0, np.minimum(rising, falling)) * 2 / (ends[2:] - ends[:-2])


_LINEAR: Final = 200 / 3
"""Hertz of a mel, up to 1000 hertz."""

_LOGARITHMIC: Final = np.log(6.4) / 27
"""Of a mel from there on, as a part of the frequency."""


def _mels(hertz: float) -> float:
    return 15 + float(np.log(hertz / 1000)) / _LOGARITHMIC if hertz >= 1000 else hertz / _LINEAR


def _hertz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(mels < 15, mels * _LINEAR, 1000 * np.exp(_LOGARITHMIC * (np.maximum(mels, 15) - 15)))


_NAMES: Final = {
    "feature_size": "bands",
    "sampling_rate": "rate",
    "n_fft": "window",
    "hop_length": "step",
    "chunk_length": "seconds",
}
_MOST: Final = {"bands": 512, "rate": 96000, "window": 1 << 14, "step": 1 << 14, "seconds": 600}


def front_end_of(said: Mapping[str, Any]) -> FrontEnd:
    """What a ``preprocessor_config.json`` asks for. Raises ModelError for what is none of this kind."""
    kind = said.get("feature_extractor_type", "WhisperFeatureExtractor")
    if kind != "WhisperFeatureExtractor":
        raise Unsupported(f"sound is to be prepared by {kind!r:.80}, wanted WhisperFeatureExtractor")
    if said.get("dither"):
        raise Unsupported("noise is to be added to sound (dither), which is not built")
    found = {name: said[key] for key, name in _NAMES.items() if said.get(key) is not None}
    for key, name in _NAMES.items():
        value = found.get(name)
        if value is not None and (type(value) is not int or not 0 < value <= _MOST[name]):
            problem = f"preprocessor_config.json has {value!r:.80} as {key}, wanted an integer from 1 to {_MOST[name]}"
            raise CorruptModel(problem)
    return FrontEnd(**found)
