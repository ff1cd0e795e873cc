"""What is in the folder of a cache, and what leaves it when there is too much: what was unused longest.

The time of a file is that of its last use. One that lies in the future tells nothing, as the clock was set back since:
such a file is taken for unused longest, until it is used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from re import fullmatch
from time import time
from typing import TYPE_CHECKING, Final

from tract_core.cache.entries import ENDING, LARGEST, PLAN, on_disk
from tract_core.frozen import frozen
from tract_core.trusted_files import TrustedFolder, is_abandoned

if TYPE_CHECKING:
    from tract_core.errors import TractError

HOUR: Final = 3600.0
"""Seconds after which nobody is writing a file any more; and by which clocks of several machines may differ."""


@frozen
class KeptFile:
    """A kernel or a prepared model that is kept. ``name``: of its file; ``bytes``: on the disk, about.

    ``used``: when it was last, in seconds since 1970.
    """

    name: str
    bytes: int
    used: float


@frozen
class Contents:
    """What is in a folder.

    ``kept``: kernels and prepared models, the one that was unused longest first; ``abandoned``: names of other files
    that nobody needs; ``distrusted``: why what somebody else may have put there is not used.
    """

    kept: tuple[KeptFile, ...]
    abandoned: tuple[str, ...]
    distrusted: tuple[TractError, ...]

    @property
    def bytes(self) -> int:
        """Of all that is kept, on the disk, about."""
        return sum(one.bytes for one in self.kept)


def contents_of(folder: TrustedFolder) -> Contents:
    """What is in the folder of a cache. Files of other names are not told. Raises OSError."""
    now = time()
    kept: list[KeptFile] = []
    abandoned: list[str] = []
    distrusted: list[TractError] = []
    for name, status, why in folder.files():
        is_kernel = fullmatch(rf"[0-9a-f]{{40}}{ENDING}", name)
        is_kept = is_kernel or fullmatch(rf"[0-9a-f]{{40}}{PLAN}", name)
        if why is not None:
            distrusted.append(why)
        elif is_abandoned(name, status, now, HOUR) or (is_kernel and status.st_size > LARGEST):
            abandoned.append(name)
        elif is_kept:
            used = status.st_mtime if status.st_mtime < now + HOUR else 0.0
            kept.append(KeptFile(name, on_disk(status.st_size), used))
    kept.sort(key=lambda one: (one.used, one.name))
    return Contents(tuple(kept), tuple(abandoned), tuple(distrusted))


def evict(folder: TrustedFolder, most: int) -> list[KeptFile]:
    """Have at most so many bytes of what is kept stay, and nothing that nobody needs. Returns what is gone.

    Raises OSError where the folder cannot be read.
    """
    found = contents_of(folder)
    left, gone = found.bytes, list[KeptFile]()
    for one in found.kept:
        if left <= most:
            break
        left -= one.bytes
        gone.append(one)
    _remove(folder, found, gone)
    return gone


def clear_out(folder: TrustedFolder, before: float = inf) -> list[KeptFile]:
    """Remove what was used last before a moment, and what nobody needs. Returns and raises as `evict`."""
    found = contents_of(folder)
    gone = [one for one in found.kept if one.used < before]
    _remove(folder, found, gone)
    return gone


def _remove(folder: TrustedFolder, found: Contents, gone: Sequence[KeptFile]) -> None:
    for name in (*found.abandoned, *(one.name for one in gone)):
        with suppress(OSError):  # others may have done so, or use it where that keeps it
            folder.remove(name)
