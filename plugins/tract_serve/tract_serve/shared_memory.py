"""Tensors in memory that a client on the same machine shares with the server (the system shared memory extension).

Regions are read and written by calls that fail where the memory is gone, and never mapped: a client that cuts short
what is mapped would end the server.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass
from typing import Any, Final

from tract_serve.errors import BadRequest, Busy, NotFound

_KEY: Final = re.compile(r"/?[A-Za-z0-9._-]{1,250}")
"""Names that ``shm_open`` takes, of files in one folder. Those of semaphores lie there, too, and are refused."""

_FOLDER: Final = "/dev/shm"  # noqa: S108: where Linux has memory that processes share


class _File:
    """A file that is open until nobody uses it any more, in whatever thread."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


@dataclass(slots=True)
class Region:
    """``byte_size`` bytes from ``offset`` on in the memory called ``key``. ``file``: that it is open as."""

    name: str
    key: str
    offset: int
    byte_size: int
    file: _File


class SharedMemory:
    """The regions that clients have registered, by name."""

    def __init__(self, most: int, most_bytes: int) -> None:
        """``most``: regions; ``most_bytes``: of what is read at once."""
        self._most, self._most_bytes = most, most_bytes
        self._regions: dict[str, Region] = {}

    def register(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Take a region. Raises BadRequest for one that is not there, or is smaller, Busy for one too many."""
        where = f"region {name[:100]!r}"
        if not name or name in self._regions:
            raise BadRequest("is registered already, or has no name", where=where, hint="unregister it first")
        if len(self._regions) >= self._most:
            raise Busy(f"{self._most} regions are registered, and no more are taken", where=where)
        if not _KEY.fullmatch(key) or key.strip("/") in (".", "..") or key.lstrip("/").startswith("sem."):
            raise BadRequest(f"the key {key[:100]!r} is no name of shared memory, as '/tensors'", where=where)
        if not (0 <= offset < 1 << 62 and 0 < byte_size < 1 << 62):
            raise BadRequest(f"offset {offset} and byte_size {byte_size} are no part of it", where=where)
        file = _File(_opened(key, where))
        told = os.fstat(file.number)
        if not stat.S_ISREG(told.st_mode):
            raise BadRequest(f"the memory {key!r} is no memory, but something else of that name", where=where)
        if offset + byte_size > told.st_size:
            problem = f"the memory {key!r} has {told.st_size} bytes, wanted {offset + byte_size}"
            raise BadRequest(problem, where=where)
        self._regions[name] = Region(name, key, offset, byte_size, file)

    def unregister(self, name: str) -> None:
        """Leave a region, or, for an empty name, all. One that is not there is left already."""
        if name:
            self._regions.pop(name, None)
        else:
            self._regions.clear()

    def status(self, name: str = "") -> list[dict[str, Any]]:
        """The regions, or the one of that name, as the protocol says it. Raises NotFound."""
        found = [self._region(name)] if name else self._regions.values()
        return [{"name": one.name, "key": one.key, "offset": one.offset, "byte_size": one.byte_size} for one in found]

    def check(self, name: str, offset: int, count: int) -> None:
        """Raises NotFound, BadRequest where bytes are no part of a region."""
        self._within(name, offset, count)

    def read(self, name: str, offset: int, count: int) -> bytearray:
        """A copy of bytes of a region, counted from its begin. Raises NotFound, BadRequest."""
        region = self._within(name, offset, count)
        found = bytearray(count)
        view, at = memoryview(found), 0
        while at < count:
            read = _read_at(region.file.number, view[at:], region.offset + offset + at)
            if not read:
                raise BadRequest("its memory is smaller than it was when it was registered", where=f"region {name!r}")
            at += read
        return found

    def write(self, name: str, offset: int, room: int, content: Any) -> None:
        """Bytes into a region. ``room``: as many as the client has left for them. Raises NotFound, BadRequest."""
        view = memoryview(content).cast("B")
        if view.nbytes > room:
            problem = f"the output has {view.nbytes} bytes, {room} are left for it"
            raise BadRequest(problem, where=f"region {name!r}")
        region = self._within(name, offset, view.nbytes)
        if os.fstat(region.file.number).st_size < region.offset + offset + view.nbytes:
            raise BadRequest("its memory is smaller than it was when it was registered", where=f"region {name!r}")
        at = 0
        while at < view.nbytes:
            try:
                at += _write_at(region.file.number, view[at:], region.offset + offset + at)
            except OSError as error:  # of memory that nobody has room for
                raise BadRequest(f"it cannot be written: {error.strerror}", where=f"region {name!r}") from None

    def _region(self, name: str) -> Region:
        found = self._regions.get(name)
        if found is None:
            there = ", ".join([*self._regions][:10]) or "none"
            raise NotFound(f"there is no region {name[:100]!r}; regions: {there}", hint="register it first")
        return found

    def _within(self, name: str, offset: int, count: int) -> Region:
        region = self._region(name)
        if not 0 <= offset <= region.byte_size - count or not 0 <= count <= self._most_bytes:
            problem = f"{count} bytes from {offset} on are no part of its {region.byte_size}"
            raise BadRequest(problem, where=f"region {name!r}")
        return region


def _opened(key: str, where: str) -> int:
    """The file of memory. No link is followed, and nothing is waited for. Raises BadRequest."""
    flags = [getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")]
    try:
        return os.open(os.path.join(_FOLDER, key.lstrip("/")), os.O_RDWR | sum(flags))
    except OSError as error:
        raise BadRequest(f"the memory {key!r} cannot be opened: {error.strerror}", where=where) from None


def _read_at(file: int, into: memoryview, offset: int) -> int:
    """How many bytes were read; 0 where there are none."""
    return 0 if sys.platform == "win32" else os.preadv(file, [into], offset)


def _write_at(file: int, content: memoryview, offset: int) -> int:
    """How many bytes were written."""
    if sys.platform == "win32":
        raise OSError("memory is shared on Linux alone")
    return os.pwrite(file, content, offset)
