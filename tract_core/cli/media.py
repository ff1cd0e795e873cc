"""Images and sounds as the values of inputs, in the shape and the type that the model wants."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import InputError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact

Array = np.ndarray[Any, Any]

_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}
"""What images are by how many channels they have, as Pillow calls it."""

_ARRAY: Final = "numpy.save('FILE.npy', array) writes an array of any shape, which --input NAME=FILE.npy takes"


@frozen
class Scaling:
    """What is done to the elements of images, which are 0 to 1 where the input is of floats.

    ``mean`` is subtracted, then it is divided by ``std``: one number for each channel, or one for all.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


def read_image(path: Path, fact: TypedFact, scaling: Scaling) -> tuple[Array, str]:
    """An image as the value of an input, and a sentence on what was done to it.

    It gets the size that the input has, as far as that is known, and as many channels, which are behind the batch or
    the last axis. Floats are 0 to 1 before they are scaled, integers 0 to 255. Raises InputError for a file that is no
    image, and for an input that takes none; Unsupported where Pillow is not installed.
    """
    picture, (channels, axis, lines, columns) = _opened(path), _places(fact)
    mode, was = _MODES[channels], f"{picture.width}x{picture.height} {picture.mode}"
    size = tuple(
        known if isinstance(known, int) else own for known, own in ((columns, picture.width), (lines, picture.height))
    )
    found: Array = np.asarray(picture.convert(mode).resize(size, resample=2))  # bilinear
    found = found.reshape((*found.shape[:2], channels))
    kind = fact.datum_type.storage
    if kind.is_float():
        found = _scaled(found, scaling, channels)
    pixels = found.transpose(2, 0, 1) if axis == 0 else found
    shape = pixels.shape if axis is not None else pixels.shape[:2]
    array = pixels.reshape((*(1,) * (fact.rank - len(shape)), *shape)).astype(kind.numpy)
    what = "from 0 to 1" if scaling == Scaling() else "scaled"
    return array, f"{was} became {size[0]}x{size[1]} {mode}, {what if kind.is_float() else 'from 0 to 255'}"


def _opened(path: Path) -> Any:
    try:
        from PIL import Image
    except ImportError:
        hint = "pip install pillow"
        raise Unsupported("images are read by Pillow, which is not installed", where=str(path), hint=hint) from None
    try:
        picture = Image.open(path)
        picture.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"it is no image that can be read: {error}", where=str(path)) from None
    return picture


def _places(fact: TypedFact) -> tuple[int, int | None, Dim, Dim]:
    """Channels, their axis behind the batch (None for lines and columns alone), lines, and columns."""
    shape = list(fact.shape[1:] if fact.rank == 4 else fact.shape)
    if fact.rank == 4 and fact.shape[0] not in (1,) and isinstance(fact.shape[0], int):
        raise InputError(f"the input wants {fact.shape[0]} images at once: {fact}", hint=_ARRAY)
    if len(shape) == 2:
        return 1, None, shape[0], shape[1]
    for axis in (0, 2) if len(shape) == 3 else ():
        channels = shape[axis]
        if isinstance(channels, int) and channels in _MODES:
            lines, columns = (size for place, size in enumerate(shape) if place != axis)
            return channels, axis, lines, columns
    raise InputError(f"an input of {fact} is none for one image, of 1, 3 or 4 channels", hint=_ARRAY)


def _scaled(pixels: Array, scaling: Scaling, channels: int) -> Array:
    for name, numbers in (("mean", scaling.mean), ("std", scaling.std)):
        if len(numbers) not in (1, channels):
            raise InputError(f"--image-{name} has {len(numbers)} numbers, the image {channels} channels")
    mean, std = (np.array(numbers, np.float64) for numbers in (scaling.mean, scaling.std))
    return (pixels / 255.0 - mean) / std


def read_sound(path: Path, fact: TypedFact) -> tuple[Array, str]:
    """A sound in PCM as the value of an input, and a sentence on what was done to it.

    Where the last axis but one of the input has as many channels as the sound, they are there; else it is their mean.
    Floats are -1 to 1, integers of 16 bits the samples. Raises InputError for a file that is no such sound, and for an
    input that takes none.
    """
    samples, rate = _samples(path)
    kind, rank = fact.datum_type.storage, fact.rank
    count, channels = samples.shape
    if not kind.is_float() and kind.numpy != np.int16:
        raise InputError(f"an input of {fact} takes no sound: wanted floats, or i16", hint=_ARRAY)
    if not rank or any(isinstance(size, int) and size != 1 for size in fact.shape[: max(rank - 2, 0)]):
        raise InputError(f"an input of {fact} is none for one sound", hint=_ARRAY)
    apart = rank > 2 and fact.shape[-2] == channels
    signal = samples.T if apart else samples.mean(1)[None] if channels > 1 else samples.T
    length = fact.shape[-1]
    if isinstance(length, int) and length != count:
        raise InputError(f"the sound has {count} samples, the input wants {length}", where=str(path), hint=_ARRAY)
    signal = signal if kind.is_float() else np.rint(np.clip(signal, -1, 1 - 2.0**-15) * 2**15)
    shape = signal.shape if rank > 1 else signal.shape[1:]
    array = signal.reshape((*(1,) * (rank - len(shape)), *shape)).astype(kind.numpy)
    told = f"{channels} channels{'' if apart else ' as their mean'}" if channels > 1 else "one channel"
    return array, f"{count} samples, {rate} a second, {told}"


def _samples(path: Path) -> tuple[Array, int]:
    """Samples from -1 to 1, (time, channels), and how many there are in a second."""
    try:
        with wave.open(str(path), "rb") as sound:
            channels, width, rate = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
            content = sound.readframes(sound.getnframes())
    except (OSError, EOFError, wave.Error, RuntimeError) as error:
        hint = "'ffmpeg -i FILE -c:a pcm_s16le sound.wav' writes one that can be read"
        raise InputError(f"it is no sound in PCM: {error}", where=str(path), hint=hint) from None
    whole = len(content) // (width * channels) * width * channels
    return _WIDTHS[width](np.frombuffer(content[:whole], np.uint8)).reshape(-1, channels), rate


def _of_three(content: Array) -> Array:
    """Samples of 24 bits: as the upper ones of 32."""
    wide = np.zeros((len(content) // 3, 4), np.uint8)
    wide[:, 1:] = content.reshape(-1, 3)
    return wide.reshape(-1).view("<i4") / 2.0**31


_WIDTHS: Final[dict[int, Callable[[Array], Array]]] = {
    1: lambda content: (content.astype(np.float64) - 128) / 2**7,
    2: lambda content: content.view("<i2") / 2.0**15,
    3: _of_three,
    4: lambda content: content.view("<i4") / 2.0**31,
}
"""How samples of so many bytes become numbers from -1 to 1."""
