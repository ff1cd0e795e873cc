"""Files that somebody else wrote: opened without being led astray, and mapped into memory.

What was checked is what is read: a file is opened once, folder by folder, without following links that may have been
put there since, and without waiting for the other end of a pipe. Windows opens no file in a folder that is open, so
there a link that is put in the place of a folder in that moment is followed; who may make one is told by Windows.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePath
from typing import Final

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, UnsafePath
from tract_core.limits import LoadLimits
from tract_core.saving import is_moved_soon

COPY: Final = "put a copy of the file beside the model"
"""What to do about a link."""

_FLAGS: Final = os.O_RDONLY | (os.O_BINARY if sys.platform == "win32" else os.O_NONBLOCK)


def check_size(size: int, limits: LoadLimits) -> None:
    """Raises LimitExceeded when a file has too many bytes."""
    if size > limits.max_bytes:
        raise LimitExceeded(
            f"the file has {size} bytes, {limits.max_bytes} are allowed",
            hint="a file that needs so many can be loaded with LoadLimits(max_bytes=...)",
        )


def map_file(descriptor: int, size: int) -> mmap | bytes:
    """The content of an open file. Raises LimitExceeded when there is no room for it."""
    noted = _NOTED.get()
    if noted is not None:
        status = os.fstat(descriptor)
        noted[status.st_dev, status.st_ino] = size
    try:
        if sys.platform == "win32" and is_moved_soon():  # which a file is not as long as it is mapped
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return file.read(size)
        return mmap(descriptor, size, access=ACCESS_READ) if size else b""
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        raise LimitExceeded(f"a file of {size} bytes cannot be mapped into memory: {error}") from None


Sizes = dict[tuple[int, int], int]
"""The bytes of files, by device and number."""

_NOTED: ContextVar[Sizes | None] = ContextVar("noted", default=None)


@contextmanager
def noting_files() -> Generator[Sizes]:
    """Inside, the files that are mapped are noted: those of a model, with all that lies beside it.

    What is noted in such a block inside another is noted in both.
    """
    noted: Sizes = {}
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)
        outer = _NOTED.get()
        if outer is not None:
            outer.update(noted)


def is_one_file(path: Path, noted: Sizes) -> bool:
    """Whether a model was read from this file and from no other."""
    try:
        status = os.stat(path)
    except OSError:  # it is gone by now
        return False
    return list(noted) == [(status.st_dev, status.st_ino)]


def map_path(path: Path, limits: LoadLimits) -> mmap | bytes:
    """The content of the file that a user names, through links too. Raises ModelError, for an empty file as well."""
    try:
        descriptor = os.open(path, _FLAGS)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise ModelError("it is a folder", hint="give the path of the file in it")
            if not stat.S_ISREG(status.st_mode):
                raise ModelError("it is not a plain file", hint="give the path of a file")
            if status.st_size == 0:
                raise CorruptModel("the file is empty")
            check_size(status.st_size, limits)
            return map_file(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a path that no system call takes
        if isinstance(error, IsADirectoryError):  # not every system opens a folder
            raise ModelError("it is a folder", hint="give the path of the file in it") from None
        reason = error.strerror if isinstance(error, OSError) else None
        raise ModelError(f"it cannot be read: {reason or error}", hint="check the path") from None


def resolve_below(folders: Sequence[Path], location: str) -> tuple[Path, PurePath]:
    """One of the model's ``folders``, and the path in it that ``location`` leads to, without links in either.

    ``folders``: without links themselves. Raises UnsafePath when it leads out of all of them.
    """
    path = PurePath(location)
    if _is_free_of_links(folders[0], path):
        return folders[0], path
    try:
        named = next((folder / location for folder in folders if (folder / location).exists()), None)
        found = (named or folders[0] / location).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle; ValueError: a NUL
        raise UnsafePath(f"{location[:80]!r} leads nowhere: {error}", hint=COPY) from None
    for folder in folders:
        if found.is_relative_to(folder):
            return folder, found.relative_to(folder)
    raise UnsafePath(f"{location!r} is a link that leads out of the model's folder", hint=COPY)


def _is_free_of_links(folder: Path, path: PurePath) -> bool:
    """Whether no part of the path is a link, which takes a tenth of the time that resolving it does.

    ``False`` where it may be one, and where a file is not opened without following those put there since.
    """
    if sys.platform == "win32" or path.is_absolute() or ".." in path.parts:
        return False
    at = str(folder)
    try:
        for part in path.parts:
            at = f"{at}{os.sep}{part}"
            if stat.S_ISLNK(os.lstat(at).st_mode):
                return False
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def plain_file_below(folder: Path, path: PurePath, location: str) -> Generator[tuple[int, os.stat_result]]:
    """A descriptor of a file and its status. ``path``: relative to ``folder``, without links; ``location``: its name.

    Raises OSError when it cannot be opened, UnsafePath when it is not a plain file.
    """
    descriptor = _open_below(folder, path.parts)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafePath(f"{location!r} is not a plain file")
        yield descriptor, status
    finally:
        os.close(descriptor)


def _open_below(folder: Path, parts: tuple[str, ...]) -> int:
    """A descriptor of a file, opened folder by folder without following links, nor waiting for a pipe's other end."""
    if sys.platform == "win32":
        return os.open(folder.joinpath(*parts), _FLAGS)
    flags = _FLAGS | os.O_NOFOLLOW
    current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = below
        return os.open(parts[-1] if parts else ".", flags, dir_fd=current)
    finally:
        os.close(current)
