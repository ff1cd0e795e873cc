"""Files of waves as RIFF has them: pieces with a name and a length, of which two count, the form and the samples.

After "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft, 1991), and what was added in
WAVEFORMATEXTENSIBLE. The ``wave`` module of Python knows whole numbers alone, and until 3.12 not the added form.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from tract_core.errors import InputError
from tract_core.frozen import frozen

_WHOLE, _FLOATS, _ADDED = 1, 3, 0xFFFE
"""What numbers are stored, by the code of the form; in the added form, that stands further behind."""

_MOST_PIECES: Final = 10_000
_LEAST_FORM, _MOST_FORM = 16, 40
"""Bytes of the form that count: at least, and where it is the added one."""

_WIDTHS: Final = {_WHOLE: (8, 16, 24, 32), _FLOATS: (32, 64)}
"""Bits of a number."""


@frozen
class Waves:
    """``floats``: whether samples are such, or whole numbers. ``channels``: how many; ``rate``: samples a second.

    ``bits``: of each number. ``begin``, ``count``: where samples lie, in bytes, and how many each channel has.
    """

    floats: bool
    channels: int
    rate: int
    bits: int
    begin: int
    count: int

    def parts(self, file: IO[bytes], most: int) -> Iterator[npt.NDArray[Any]]:
        """The numbers [samples,channels] of a file, some ``most`` bytes at once; those of 24 bits in 32, as loud."""
        file.seek(self.begin)
        size, left = self.channels * self.bits // 8, self.count
        while left:
            content = file.read(min(left, max(most // size, 1)) * size)
            found = self._numbers(content[: len(content) // size * size])
            if not len(found):
                return
            yield found.reshape(-1, self.channels)
            left -= len(found) // self.channels

    def _numbers(self, content: bytes) -> npt.NDArray[Any]:
        if self.bits != 24:
            return np.frombuffer(content, f"<{'f' if self.floats else 'u' if self.bits == 8 else 'i'}{self.bits // 8}")
        wide = np.zeros((len(content) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
        return wide.view("<i4")[:, 0]


def read_header(file: IO[bytes]) -> Waves:
    """What a file says of its samples, which may be fewer where it ends early. Raises InputError for another file."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(12)
    if start[:4] != b"RIFF" or start[8:] != b"WAVE":
        raise _unknown(f"it begins with {start[:12].hex(' ') or 'nothing'}")
    form, at = b"", 12
    for _ in range(_MOST_PIECES):
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            raise _unknown("it ends before its samples")
        name, length = head[:4], int.from_bytes(head[4:], "little")
        if name == b"fmt ":
            form = file.read(min(length, _MOST_FORM))
        if name == b"data":
            return _waves(form, at + 8, min(length, max(size - at - 8, 0)))
        at += 8 + length + length % 2
    raise _unknown(f"it has more than {_MOST_PIECES} pieces")


def _waves(form: bytes, begin: int, length: int) -> Waves:
    if len(form) < _LEAST_FORM:
        raise _unknown("it does not say of what form its samples are")
    kind, channels, bits = (int.from_bytes(form[at : at + 2], "little") for at in (0, 2, 14))
    rate = int.from_bytes(form[4:8], "little")
    if kind == _ADDED and len(form) == _MOST_FORM:
        kind = int.from_bytes(form[24:26], "little")
    if kind not in _WIDTHS:
        raise _unknown(f"its samples are of the form {kind}, wanted {_WHOLE} (whole numbers) or {_FLOATS} (floats)")
    if bits not in _WIDTHS[kind] or not channels:
        wanted = ", ".join(map(str, _WIDTHS[kind]))
        raise _unknown(f"it has {channels} channels of {bits} bits, wanted {wanted} bits")
    return Waves(kind == _FLOATS, channels, rate, bits, begin, length // (channels * bits // 8))


def _unknown(problem: str) -> InputError:
    hint = "ffmpeg -i INPUT -ac 1 -ar 16000 -c:a pcm_s16le OUTPUT.wav makes such a file"
    return InputError(f"it is no file of waves that is known: {problem}", hint=hint)
