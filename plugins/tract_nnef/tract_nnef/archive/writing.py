"""Archives to write: a folder, a tar, a gzip-compressed tar. The same files give the same bytes, wherever and whenever.

A file is given as its bytes, or as pieces of them, which are written one after the other: weights are never copied.
"""

from __future__ import annotations

import io
import os
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
"""How hard gzip tries. Higher levels gain nothing on weights."""


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


def write_tar_gz(path: str | os.PathLike[str], files: Files, level: int = LEVEL) -> None:
    """Write a gzip-compressed tar, whole or not at all, as `write_tar` does. ``level``: 1 to 9. Raises InputError."""
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


def _compress(file: IO[bytes], files: Files, level: int = LEVEL) -> None:
    import gzip  # who only reads archives needs it as little as tarfile

    with gzip.GzipFile("", "wb", level, file, mtime=0) as compressed:
        _write(compressed, tar_pieces(files))


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
