"""Samples of sound, from files of waves and from arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_transformers.audio.riff import read_header

Samples = npt.NDArray[np.float32]

MOST_SECONDS: Final = 6 * 3600
"""Of a recording."""

RATES: Final = (1000, 768000)
"""The slowest and the fastest rate, in samples a second."""

MOST_SAMPLES: Final = 1 << 29
"""Of a channel, for memory: six hours at 24 kHz."""

_AT_ONCE: Final = 1 << 24
"""Bytes that are read of a file at once."""

_FORMS: Final = {1: (np.dtype("u1"), 128, 128), 2: (np.dtype("<i2"), 0, 1 << 15), 4: (np.dtype("<i4"), 0, 1 << 31)}
"""How whole numbers of so many bytes are stored: the type, what stands for silence, and the loudest."""


@frozen
class Sound:
    """``samples``: of one channel, between -1 and 1 unless it is louder. ``rate``: samples a second."""

    samples: Samples
    rate: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / self.rate


def sound_of(samples: Any, rate: int | None) -> Sound:
    """Samples that somebody gives, of one channel, or [samples,channels], of which the mean is taken.

    Integers are as files have them. Raises InputError for what is no sound.
    """
    if rate is None:
        raise InputError("an array of samples wants its rate", hint="as transcribe(samples, rate=16000)")
    checked_rate(rate)
    try:
        array = np.asarray(samples)
    except (TypeError, ValueError) as error:
        raise InputError(f"the samples are no array of numbers: {error}") from None
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu" or (array.ndim == 2 and not array.shape[1]):
        shape = "x".join(map(str, array.shape)) or "none"
        raise InputError(
            f"the samples are {array.dtype} of shape {shape}, wanted numbers: samples, or samples,channels"
        )
    _check_length(len(array), rate)
    return Sound(_checked(_in_floats(array)), rate)


def read_wave(path: Path) -> Sound:
    """The sound in a file of waves: whole numbers of 8 to 32 bits, or floats. Raises InputError for another file."""
    try:
        if not path.is_file():
            raise InputError("there is no such file")
        with path.open("rb") as file:
            waves = read_header(file)
            checked_rate(waves.rate)
            _check_length(waves.count, waves.rate)
            parts = [_in_floats(part) for part in waves.parts(file, _AT_ONCE)]
        return Sound(_checked(np.concatenate([*parts, np.zeros(0, np.float32)])), waves.rate)
    except InputError as error:
        raise error.at(str(path)) from None
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror or error}", where=str(path)) from None


def checked_rate(rate: object) -> None:
    """Raise InputError for what is no rate."""
    if type(rate) is not int or not RATES[0] <= rate <= RATES[1]:
        raise InputError(f"the rate is {rate!r:.80}, wanted {RATES[0]} to {RATES[1]} samples a second")


def _check_length(count: int, rate: int) -> None:
    if not count:
        raise InputError("the sound is empty")
    if count > MOST_SECONDS * rate or count > MOST_SAMPLES:
        problem = f"the sound takes {count / rate:.0f} seconds of {rate} samples"
        wanted = f"{MOST_SECONDS} are allowed, and {MOST_SAMPLES} samples"
        raise InputError(f"{problem}, {wanted}", hint="cut it into parts")


def _in_floats(array: npt.NDArray[Any]) -> Samples:
    """One channel of floats."""
    if array.dtype.kind in "iu":
        form = next((one for one in _FORMS.values() if one[0] == array.dtype), None)
        if form is None:
            raise InputError(f"the samples are {array.dtype}, wanted floats, u8, i16 or i32")
        found = (array.astype(np.float32) - np.float32(form[1])) * np.float32(1 / form[2])
    else:
        with np.errstate(over="ignore"):  # what is too large is seen as infinite
            found = array.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return found if found.ndim == 1 else found.mean(axis=1, dtype=np.float32)


def _checked(samples: Samples) -> Samples:
    if not len(samples):
        raise InputError("the sound is empty")
    if not np.isfinite(samples).all():
        place = int(np.flatnonzero(~np.isfinite(samples))[0])
        raise InputError(f"sample {place} of the sound is {samples[place]}, wanted a number")
    return samples
