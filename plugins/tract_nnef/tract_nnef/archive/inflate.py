"""Where the bytes of a tar come from: a file that is mapped into memory, or a gzip-compressed one as it is inflated."""

from __future__ import annotations

import zlib
from typing import Final, Protocol

import numpy as np

from tract_core.data.stored import Array
from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.limits import LoadLimits, current_budget

GZIP: Final = b"\x1f\x8b"
"""How a gzip-compressed file begins."""

RATIO: Final = 32
"""Bytes that a compressed byte may become, beyond `LoadLimits.max_fold_bytes`. Weights become 1.1, texts 10."""

_PIECE: Final = 1 << 18
"""Bytes that are inflated or looked at between two looks at the clock."""

_FILLER: Final = 1 << 20
"""Zeros that may come after the end of a tar. Tools fill up 10 KiB by default, which is a block of a tape."""

_ALIGNED: Final = 64
"""The address of inflated bytes is a multiple of it, as that of mapped ones is, so that the runtimes read in place."""

DAMAGED: Final = "it is damaged, or its download was interrupted: download or export it again"


class Inflation:
    """How many bytes may be inflated from the files of a model, and from the archives in them."""

    def __init__(self, limits: LoadLimits) -> None:
        self._limits = limits
        self._allowed = limits.max_fold_bytes
        self._taken = 0

    def allow(self, size: int) -> None:
        """A file of that size is read, so that there may be more."""
        self._allowed = min(self._limits.max_bytes, self._allowed + RATIO * size)

    def take(self, size: int) -> None:
        """Raises LimitExceeded when there are more than allowed."""
        self._taken += size
        if self._taken > self._allowed:
            raise LimitExceeded(
                f"it inflates to more than the {self._allowed} bytes that are allowed for its size",
                hint="unpack a model that is so large, and load the folder; or raise LoadLimits(max_fold_bytes=...)",
            )


class ByteSource(Protocol):
    """Bytes that are taken in order."""

    def take(self, size: int) -> Array:
        """The next bytes, read-only; fewer at the end. Raises CorruptModel, LimitExceeded."""
        ...

    def check_end(self) -> None:
        """Raises CorruptModel when what follows is more than the zeros that fill up a tape."""
        ...


class Mapped:
    """The bytes of a file in memory, and views of them."""

    def __init__(self, content: Array) -> None:
        self._content = content
        self._at = 0

    def take(self, size: int) -> Array:
        """The next bytes, in place."""
        taken = self._content[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def check_end(self) -> None:
        """Looks at all that is left."""
        check_zeros(self)


class Inflated:
    """The bytes that a gzip-compressed file becomes."""

    def __init__(self, content: Array, inflation: Inflation) -> None:
        self._content = content
        self._at = 0
        self._tail = b""
        self._inflation = inflation
        self._stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    def take(self, size: int) -> Array:
        """The next bytes, in memory of their own."""
        self._inflation.take(size)
        taken = aligned(size)
        at = 0
        while at < size and (piece := self._inflate(min(size - at, _PIECE))):
            taken[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
        taken.flags.writeable = False
        return taken[:at]

    def check_end(self) -> None:
        """Inflates what is left, so that the checksum is looked at as well."""
        check_zeros(self)
        over = len(self._stream.unused_data) + len(self._content) - self._at
        if over:
            raise CorruptModel(f"after the compressed archive come {over} more bytes", hint=DAMAGED)

    def _inflate(self, size: int) -> bytes:
        """At least one byte and at most ``size``; none at the end."""
        while not self._stream.eof:
            if not self._tail and self._at == len(self._content):
                raise CorruptModel("the compressed archive is cut off: its end is missing", hint=DAMAGED)
            given = self._tail or self._content[self._at : self._at + _PIECE].data
            self._at += 0 if self._tail else len(given)
            try:
                piece = self._stream.decompress(given, size)
            except zlib.error as error:
                raise CorruptModel(f"it cannot be inflated: {error}", hint=DAMAGED) from None
            self._tail = self._stream.unconsumed_tail
            check_time()
            if piece:
                return piece
        return b""


def check_zeros(source: ByteSource) -> None:
    """Raises CorruptModel when anything is left but some zeros."""
    if source.take(_FILLER).any() or len(source.take(1)):
        raise CorruptModel("something follows after the end of the archive", hint=DAMAGED)


def check_time() -> None:
    """Raises LimitExceeded when the time of the budget that is on is up."""
    budget = current_budget()
    if budget is not None:
        budget.time()


def aligned(size: int) -> Array:
    """Memory for bytes. Raises LimitExceeded when there is none left."""
    try:
        memory = np.empty(size + _ALIGNED, np.uint8)
    except (MemoryError, ValueError):
        raise LimitExceeded(f"there is no memory for a file of {size} bytes in the archive") from None
    start = -memory.ctypes.data % _ALIGNED
    return memory[start : start + size]
