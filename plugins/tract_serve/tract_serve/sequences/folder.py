"""A store in a folder: a file for each sequence, written whole; the oldest leave it when there are too many."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import time
from typing import Final

from tract_core.errors import InputError
from tract_core.saving import whole_file
from tract_serve.sequences.store import NotStored
from tract_serve.settings import Limits

_ENDING: Final = ".sequence"
_UNFINISHED: Final = ".unfinished"

_OFTEN: Final = 64
"""How often something is written, at most, between two looks at what there is; room for as many is made then."""

_SHARE: Final = 8
"""Of the bytes that may be kept, one part in so many may come between two looks; room for as many is made then."""

_ABANDONED_S: Final = 3600.0
"""After how many seconds a file is left over from a process that was killed while it wrote it."""

_SPARE: Final = 1 << 12
"""Bytes in front of a state, at most."""


class FolderPlace:
    """States in files of a folder, of this server and of others that use it."""

    def __init__(self, path: str, limits: Limits) -> None:
        """The folder is made if it is not there. Raises InputError where it cannot be used."""
        self._folder, self._limits = Path(path), limits
        self._often = max(1, min(_OFTEN, limits.stored // 4))
        self._lock, self._since = Lock(), self._often
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(self._folder, os.R_OK | os.W_OK | os.X_OK):
                raise InputError("the store cannot be read and written", where=path, hint="its owner can allow it")
        except OSError as error:
            raise InputError(f"the store cannot be made: {error.strerror or error}", where=path) from None

    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all. Raises NotStored, as where the disk is full."""
        self._make_room(len(content))
        try:
            with whole_file(self._at(name)) as file:
                file.write(content)
        except InputError as error:
            raise NotStored(error.problem, where=error.where, hint=error.hint) from None

    def get(self, name: str) -> bytes | None:
        """A file; ``None`` where there is none, or it is too large to be one of ours."""
        most = self._limits.sequence_bytes + _SPARE
        try:
            with self._at(name).open("rb") as file:
                found = file.read(most + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _not_read(self._at(name), error) from None
        return found

    def tag(self, name: str) -> object:
        """When it was written, and where it lies; ``None`` where there is none, or it is too old."""
        try:
            found = os.stat(self._at(name))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _not_read(self._at(name), error) from None
        if found.st_mtime < time() - self._limits.stored_s:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def remove(self, name: str) -> None:
        """Leave a file."""
        try:
            self._at(name).unlink(missing_ok=True)
        except OSError as error:
            raise NotStored(f"it cannot be removed: {error.strerror or error}", where=str(self._at(name))) from None

    def _at(self, name: str) -> Path:
        return self._folder / f"{name}{_ENDING}"

    def _make_room(self, count: int) -> None:
        """Every now and then, remove what is too old, and the oldest while there are too many files or bytes."""
        with self._lock:
            self._since += 1 + count * self._often * _SHARE // self._limits.stored_bytes
            if self._since < self._often:
                return
            self._since = 0
        limits, now = self._limits, time()
        files = sorted(_files(self._folder))
        number, size = len(files), sum(one[1] for one in files) + count
        for written, taken, path in files:
            is_old = written < now - (_ABANDONED_S if path.name.endswith(_UNFINISHED) else limits.stored_s)
            if is_old or number > limits.stored - self._often or size > limits.stored_bytes * (_SHARE - 1) // _SHARE:
                with suppress(OSError):
                    path.unlink()
                number, size = number - 1, size - taken


def _files(folder: Path) -> list[tuple[float, int, Path]]:
    """What is in the store: when it was written, its bytes, its path."""
    found: list[tuple[float, int, Path]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((_ENDING, _UNFINISHED)):
                with suppress(OSError):
                    told = entry.stat(follow_symlinks=False)
                    found.append((told.st_mtime, told.st_size, Path(entry.path)))
    return found


def _not_read(path: Path, error: OSError) -> NotStored:
    return NotStored(f"the state that was kept cannot be read: {error.strerror or error}", where=str(path))
