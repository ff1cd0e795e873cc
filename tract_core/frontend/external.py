"""Tensors kept in files beside the model: which files may be read, and how.

A model names such a file by a path relative to its own folder. Whatever leads out of that folder is refused: absolute
paths, parent folders, drive letters, links whose target is elsewhere, second names of a file that may be elsewhere, and
anything that is not a plain file. What was checked is what is read: the file is opened once, folder by folder, without
following links that may have been put there since.

Where the model is a link itself, as in the cache of Hugging Face, the folder of the file behind it is its own as well.
"""

from __future__ import annotations

from mmap import mmap
from os import stat_result
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Final

from tract_core.errors import CorruptModel, ModelError, UnsafePath
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, current_budget
from tract_core.safe_files import COPY, check_size, map_file, plain_file_below, resolve_below

MAX_PATH: Final = 1024
"""Characters in the path of an external file."""

_DEVICES: Final = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})
"""Names that some systems give to devices, in every folder and with any suffix."""

_PIECE: Final = 1 << 24
"""Bytes of a file that are read for its digest at a time."""


class ExternalFiles:
    """The files beside one model, each mapped into memory once. ``path``: ``None`` when the model came as bytes."""

    def __init__(self, path: Path | None, limits: LoadLimits = DEFAULT_LIMITS) -> None:
        self._path = path
        self._limits = limits
        self._digests: dict[str, str] = {}
        self._contents: dict[str, mmap | bytes] = {}
        self._files: dict[tuple[int, int], mmap | bytes] = {}
        self.stored = 0
        """Bytes that the files opened so far take on the disk: what is left out of a file with holes does not count."""

    def open(self, location: str, checksum: str | None = None) -> mmap | bytes:
        """The content of a file, whose SHA-1 digest is ``checksum``, where that is given.

        Raises UnsafePath, LimitExceeded, CorruptModel for another digest, or ModelError when it cannot be read.
        """
        if location not in self._contents:
            self._contents[location] = self._read(*self._resolve(location), location)
        if checksum is not None:
            self._check(location, checksum)
        return self._contents[location]

    def _check(self, location: str, checksum: str) -> None:
        """A file is read for its digest once, whatever its size: few files have one, and who gives it wants it used."""
        if location not in self._digests:
            self._digests[location] = _digest(self._contents[location])
        if checksum.lower() != self._digests[location]:
            raise CorruptModel(
                f"{location!r} has the SHA-1 digest {self._digests[location]}, the model wants {checksum[:40]!r}",
                hint="the file of external data is damaged, or belongs to another model",
            )

    def _resolve(self, location: str) -> tuple[Path, PurePath]:
        """A folder of the model, and the path of the file in it, without links in either."""
        if self._path is None:
            raise UnsafePath(
                f"the model came without a folder, and keeps tensors in the file {location[:80]!r}",
                hint="load it from its path",
            )
        _check_text(location)
        try:
            folders = list(dict.fromkeys((self._path.parent.resolve(), self._path.resolve().parent)))
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            raise UnsafePath(f"{location[:80]!r} leads nowhere: {error}", hint=COPY) from None
        return resolve_below(folders, location)

    def _read(self, folder: Path, path: PurePath, location: str) -> mmap | bytes:
        try:
            with plain_file_below(folder, path, location) as (descriptor, status):
                return self._map(descriptor, status, location)
        except OSError as error:
            raise ModelError(
                f"the external data file {location!r} cannot be opened: {error.strerror}",
                hint="keep the files that came with the model together in one folder",
            ) from None

    def _map(self, descriptor: int, status: stat_result, location: str) -> mmap | bytes:
        if status.st_nlink > 1:
            raise UnsafePath(
                f"{location!r} has {status.st_nlink} names, one of which may be outside the model's folder", hint=COPY
            )
        key = status.st_dev, status.st_ino
        if key not in self._files:
            check_size(status.st_size, self._limits)
            self._files[key] = map_file(descriptor, status.st_size)
            self.stored += min(status.st_size, getattr(status, "st_blocks", status.st_size) * 512)
        return self._files[key]


def _digest(content: mmap | bytes) -> str:
    """The SHA-1 digest, which the format asks for: it tells damage, and is no protection against who means harm."""
    from hashlib import sha1

    digest = sha1(usedforsecurity=False)
    budget = current_budget()
    with memoryview(content) as view:
        for start in range(0, len(view), _PIECE):
            digest.update(view[start : start + _PIECE])
            if budget is not None:
                budget.time()
    return digest.hexdigest()


def _check_text(location: str) -> None:
    """Raise UnsafePath unless ``location`` is a plain path relative to its folder on every system."""
    windows = PureWindowsPath(location)
    reason = (
        "it is empty"
        if not location or location == "."
        else f"it has {len(location)} characters, {MAX_PATH} are allowed"
        if len(location) > MAX_PATH
        else "it has a control character"
        if any(ord(character) < 32 or ord(character) == 127 for character in location)
        else "it is absolute"
        if location.startswith(("/", "\\")) or windows.drive or ":" in location
        else "it leads to a parent folder"
        if ".." in PurePosixPath(location).parts or ".." in windows.parts
        else "a part of it ends with a dot or a space"
        if any(part.endswith((".", " ")) for part in windows.parts)
        else "it names a device"
        if any(part.partition(".")[0].strip().lower() in _DEVICES for part in windows.parts)
        else None
    )
    if reason is not None:
        shown = f"{location[:80]}..." if len(location) > 80 else location
        raise UnsafePath(f"the path {shown!r} of external data is refused: {reason}")
