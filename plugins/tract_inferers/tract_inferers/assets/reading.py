"""Bytes from whoever has them: a buffer, a file, a socket that gives a few at a time. No more than are allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, cast

from tract_core.errors import InputError, TractError
from tract_core.limits import LoadLimits
from tract_core.safe_files import check_size

PIECE: Final = 1 << 20
"""Bytes that a reader is asked for at once."""


class Reader(Protocol):
    """What has ``read(count)``, which gives that many bytes or fewer, and none at the end: a file, a socket's file."""

    def read(self, count: int, /) -> bytes:
        """The next bytes."""
        ...


def content_of(source: bytes | bytearray | memoryview | Reader, limits: LoadLimits) -> bytes:
    """All that there is. Raises InputError for what gives no bytes, LimitExceeded for too many of them."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        check_size(memoryview(source).nbytes, limits)
        return bytes(source)
    if not hasattr(source, "read"):
        hint = "AssetData.load(path) takes the path of a file" if isinstance(source, str) else None
        raise InputError(f"an asset is read from bytes or a reader, got {type(source).__name__}", hint=hint)
    content = bytearray()
    for piece in _pieces(source):
        check_size(len(content) + len(piece), limits)
        content += piece
    return bytes(content)


def name_of(source: Any) -> str | None:
    """What messages may call a reader: the path of an open file."""
    name: Any = getattr(source, "name", None)
    return name if isinstance(name, str) else None


def _pieces(reader: Reader) -> Iterator[bytes]:
    while True:
        try:
            piece = cast("Any", reader.read(PIECE))
        except TractError:
            raise
        except OSError as error:
            raise InputError(f"the reader failed: {error.strerror or error}") from error
        if not isinstance(piece, bytes):
            hint = "open the file with 'rb'" if isinstance(piece, str) else "it has to wait until there are bytes"
            raise InputError(f"the reader gave {type(piece).__name__}, wanted bytes", hint=hint)
        if not piece:
            return
        yield piece
