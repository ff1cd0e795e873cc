"""Archives to write: a folder, a tar, a gzip-compressed tar. The same files give the same bytes, wherever and whenever.

A file is given as its bytes, or as pieces of them, which are written one after the other: weights are never copied.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from tract_core.data.stored import Array
from tract_core.errors import InputError, TractError
from tract_core.saving import whole_file, whole_folder
from tract_nnef.archive.names import entry_name, fits_folder
from tract_nnef.archive.tar import BLOCK

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

Pieces = bytes | Sequence[bytes | Array]
"""The content of a file: arrays are of ``uint8``, with one axis."""

Files = Mapping[str, Pieces]
"""What is in an archive, in order."""

DATE: Final = 315532800
"""When every file was changed, as the archive says: on the first of January 1980, the first day that ZIP knows."""

LEVEL: Final = 6
"""How hard gzip tries, where it tries. Higher levels gain nothing on weights."""

PIECE: Final = 1 << 20
"""Bytes that are compressed apart from the others, or stored as they are."""

TRIED: Final = 1 << 16
"""Bytes of a piece that are compressed to see whether that is worth it."""

WORTH: Final = 0.8
"""What at most must be left of a piece that is compressed. Floats become 0.93, and are inflated ten times as slowly as
they are read where they are stored."""

_HEAD: Final = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
"""Of a file of gzip (RFC 1952): no name, no date, from no system."""

_END: Final = b"\x03\x00"
"""The last block of what is deflated (RFC 1951), which is empty."""


def write_folder(path: str | os.PathLike[str], files: Files) -> None:
    """Make a folder with those files, whole or not at all. Raises InputError, also where ``path`` is there already."""
    _check(files)
    for name in files:
        if not fits_folder(name):
            raise InputError(f"a file cannot be called {name!r} on this system", hint="write a tar")
    with whole_folder(path) as folder:
        for name, pieces in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                _write(file, _pieces(pieces))
                file.flush()
                os.fsync(file.fileno())


def write_tar(path: str | os.PathLike[str], files: Files) -> None:
    """Write a tar, whole or not at all: a file that is there already is replaced at the end. Raises InputError."""
    _check(files)
    with whole_file(Path(path)) as file:
        _write(file, tar_pieces(files))


def write_tar_gz(path: str | os.PathLike[str], files: Files, level: int | None = None) -> None:
    """Write a gzip-compressed tar, whole or not at all, as `write_tar` does. Raises InputError.

    ``level``: how hard gzip tries, 1 to 9. Without it, what hardly becomes smaller is stored as it is, as weights.
    """
    _check(files)
    with whole_file(Path(path)) as file:
        _compress(file, files, level)


def tar_pieces(files: Files) -> Iterator[bytes | Array]:
    """The bytes of a tar, piece by piece. Tensors in it begin at multiples of 64 bytes. Raises InputError."""
    _check(files)
    for name, content in files.items():
        pieces = _pieces(content)
        size = sum(map(len, pieces))
        yield _header(name, size)
        yield from pieces
        yield bytes(-size % BLOCK)
    yield bytes(2 * BLOCK)


def tar_bytes(files: Files) -> bytes:
    """A tar in memory. Raises InputError."""
    file = io.BytesIO()
    _write(file, tar_pieces(files))
    return file.getvalue()


def tar_gz_bytes(files: Files) -> bytes:
    """A gzip-compressed tar in memory. Raises InputError."""
    file = io.BytesIO()
    _compress(file, files)
    return file.getvalue()


def _compress(file: IO[bytes], files: Files, level: int | None = None) -> None:
    """One file of gzip, of pieces that know nothing of one another."""
    file.write(_HEAD)
    checksum = size = 0
    for piece in _gathered(tar_pieces(files)):
        checksum, size = zlib.crc32(piece, checksum), size + len(piece)
        file.write(_deflated(piece, _level_for(piece) if level is None else level))
    file.write(_END)
    file.write(checksum.to_bytes(4, "little") + (size % (1 << 32)).to_bytes(4, "little"))


def _gathered(pieces: Iterable[bytes | Array]) -> Iterator[memoryview]:
    """The same bytes in pieces of `PIECE` at most, where what is large is apart from headers and texts around it."""
    small = bytearray()
    for piece in pieces:
        whole = memoryview(piece) if isinstance(piece, bytes) else piece.data
        for start in range(0, len(whole), PIECE):
            part = whole[start : start + PIECE]
            if small and (len(part) > TRIED or len(small) + len(part) > PIECE):
                yield memoryview(bytes(small))
                small.clear()
            if len(part) > TRIED:
                yield part
            else:
                small += part
    if small:
        yield memoryview(bytes(small))


def _level_for(piece: memoryview) -> int:
    """`LEVEL` for what becomes smaller by enough; 0, which stores it, for the rest."""
    tried = piece[:TRIED]
    return LEVEL if len(_deflated(tried, LEVEL)) <= WORTH * len(tried) else 0


def _deflated(piece: memoryview, level: int) -> bytes:
    """A piece, without the end, so that another one can follow."""
    stream = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
    return stream.compress(piece) + stream.flush(zlib.Z_SYNC_FLUSH)


def _header(name: str, size: int) -> bytes:
    """Owner and group are root, whoever writes; names longer than 100 bytes are written as GNU does."""
    import tarfile

    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, DATE, 0o644
    return entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _pieces(content: Pieces) -> Sequence[bytes | Array]:
    return (content,) if isinstance(content, bytes) else content


def _write(file: SupportsWrite[bytes | memoryview], pieces: Iterable[bytes | Array]) -> None:
    for piece in pieces:
        file.write(piece if isinstance(piece, bytes) else piece.data)


def _check(files: Files) -> None:
    """Raises InputError for a name that would not be found when the archive is read."""
    for name in files:
        try:
            kept = entry_name(name)
        except TractError as error:
            raise InputError(f"a file of an archive cannot be called {name[:80]!r}", hint=error.problem) from None
        if kept is None:
            raise InputError(f"a file of an archive cannot be called {name!r}: readers ignore what begins with a dot")
        if kept != name or not name:
            raise InputError(f"a file of an archive cannot be called {name!r}, wanted {kept!r}")
