"""Files that are as good as our own: nobody but their user and root can have written them, or can exchange them.

They are for what is executed, as compiled code. (`safe_files` opens what somebody else may have written.)

A path is followed from the root on. Each folder on the way belongs to the user or to root, and nobody else may write
to it; one with the sticky bit, as ``/tmp``, may be open to all, as nobody moves what belongs to others in it. Links
belong to the user or to root too. So nobody else can exchange a part of the path, before it was looked at or after
that. The last folder is opened, and so are its files: what counts is what the system says of the very file that is
open. Access lists count as far as modes show them, as those of Linux do; whoever runs a file server or mounts a file
system is trusted. Where files have no owners of this kind, as on Windows, nothing is looked at.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP
from typing import Final

from tract_core.errors import TractError

UNFINISHED: Final = ".new-"
"""What the names of files begin with that are being written; the number of the process that writes follows."""

_MOST_LINKS: Final = 40

_OF_A_FILE: Final = os.O_BINARY if sys.platform == "win32" else os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""`O_NONBLOCK` is for pipes, which nobody waits for."""

_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class Distrusted(TractError):
    """What is at a place may have been put there by somebody else. ``where``: the place; ``problem``: why."""

    advice = "it is only used where nobody but you and root can write to it: chmod go-w, or take another place"


class TrustedFolder:
    """A folder that is open, and that nobody else can write to. Names are those of files right in it."""

    def __init__(self, path: str, descriptor: int | None) -> None:
        """``descriptor``: of the folder; ``None`` where files are found by their paths."""
        self.path = path
        self._descriptor = descriptor

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else self._place(name)

    def _place(self, name: str) -> str:
        return os.path.join(self.path, name)

    @contextmanager
    def file(self, name: str, flags: int = os.O_RDONLY) -> Generator[tuple[int, os.stat_result]]:
        """A descriptor of a file, and its status. A file that is made is the user's alone.

        No link is followed, and no pipe is waited for. Raises Distrusted where somebody else may have written the file,
        FileNotFoundError where there is none, OSError where it cannot be opened.
        """
        try:
            descriptor = os.open(self._at(name), flags | _OF_A_FILE, 0o600, dir_fd=self._descriptor)
        except FileNotFoundError:
            raise
        except OSError:
            self._look_at(name)  # it may be that of somebody else, or no file
            raise
        try:
            status = os.fstat(descriptor)
            _refuse(_distrusted_file(self._place(name), status))
            yield descriptor, status
        finally:
            os.close(descriptor)

    def _look_at(self, name: str) -> None:
        """Raises Distrusted where what has this name may be somebody else's."""
        with suppress(FileNotFoundError):
            status = os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)
            _refuse(_distrusted_file(self._place(name), status))

    def write(self, name: str, content: Iterable[bytes | memoryview]) -> None:
        """Put a file in its place, whole, for the user alone. Others see what was there before, or all of it.

        ``content``: of the file, in pieces.

        Raises Distrusted, and leaves what is there, where that may be somebody else's; OSError where nothing can be
        written. Whoever is killed in the middle leaves a file that `is_abandoned` tells.
        """
        self._look_at(name)
        beside = f"{UNFINISHED}{os.getpid()}-{os.urandom(8).hex()}"
        try:
            with (
                self.file(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as (descriptor, _),
                os.fdopen(descriptor, "wb", closefd=False) as file,
            ):
                file.writelines(content)
            places = {"src_dir_fd": self._descriptor, "dst_dir_fd": self._descriptor}
            os.replace(self._at(beside), self._at(name), **places)
        except BaseException:
            with suppress(OSError):
                self.remove(beside)
            raise

    def touch(self, name: str) -> None:
        """Say that a file was used now. Raises OSError."""
        os.utime(self._at(name), dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Raises OSError."""
        os.unlink(self._at(name), dir_fd=self._descriptor)

    def files(self) -> Iterator[tuple[str, os.stat_result, Distrusted | None]]:
        """What is in it, folders left out: names, status, and why something may be somebody else's. Raises OSError."""
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it is gone by now
                    status = entry.stat(follow_symlinks=False)
                    if not stat.S_ISDIR(status.st_mode):
                        yield entry.name, status, _distrusted_file(self._place(entry.name), status)


@contextmanager
def trusted_folder(path: str | os.PathLike[str], *, make: bool = False) -> Generator[TrustedFolder]:
    """The folder at an absolute path, open. ``make``: with all that is missing of it, for the user alone.

    Raises Distrusted where somebody else could put files there, or another folder in its place; OSError where it
    cannot be opened.
    """
    found = resolved(path, make=make)
    if sys.platform == "win32":
        yield TrustedFolder(found, None)
        return
    descriptor = os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _refuse(_distrusted(found, os.fstat(descriptor)))
        yield TrustedFolder(found, descriptor)
    finally:
        os.close(descriptor)


def resolved(path: str | os.PathLike[str], *, make: bool = False) -> str:
    """An absolute path without links. ``make``: make the folders that are missing, for the user alone.

    Raises Distrusted where a folder or a link on the way could be exchanged by somebody else, OSError where the path
    leads nowhere. Where nothing is made, what is missing at its end stays as it is.
    """
    if sys.platform == "win32":
        if make:
            os.makedirs(path, 0o700, exist_ok=True)
        return os.path.realpath(path)
    whole = os.fspath(path) if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    place, left, links = os.sep, _parts(whole), 0
    while left:
        part = left.pop()
        if part == "..":  # of what is no link, as `place` has none
            place = os.path.dirname(place)
            continue
        below = os.path.join(place, part)
        status = _status(below, make=make)
        if status is None:
            return os.path.join(below, *reversed(left))
        _refuse(_distrusted(below, status, on_the_way=True))
        if not stat.S_ISLNK(status.st_mode):
            place = below
        elif (links := links + 1) > _MOST_LINKS:
            raise OSError(ELOOP, os.strerror(ELOOP), os.fspath(path))
        else:
            left += _parts(os.readlink(below))  # an absolute one begins with the root again
    return place


def _parts(path: str) -> list[str]:
    """The root, where a path begins with it, and the names in it: the last one first."""
    names = [one for one in path.split(os.sep) if one not in {"", os.curdir}]
    return [*reversed(names), os.sep] if path.startswith(os.sep) else names[::-1]


def _status(path: str, *, make: bool) -> os.stat_result | None:
    """What is there, which is made if need be; ``None`` for nothing."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        if not make:
            return None
    with suppress(FileExistsError):  # somebody made it just now
        os.mkdir(path, 0o700)
    return os.lstat(path)


def is_abandoned(name: str, status: os.stat_result, now: float, after: float) -> bool:
    """Whether a file was being written by a process that has ended, or that has not done so in ``after`` seconds.

    A process that is taken for dead, as it runs on another machine, finds that its file is gone, and loses no more.
    """
    if not name.startswith(UNFINISHED):
        return False
    if abs(now - status.st_mtime) > after:
        return True
    writer = name.removeprefix(UNFINISHED).partition("-")[0]
    return sys.platform != "win32" and writer.isdigit() and not _lives(int(writer))  # to ask there is to end it


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is somebody else's
        return True
    return True


def _refuse(found: Distrusted | None) -> None:
    if found is not None:
        raise found


def _distrusted_file(path: str, status: os.stat_result) -> Distrusted | None:
    """Why a file may be somebody else's, or change under another name; ``None`` for one that may not."""
    if not stat.S_ISREG(status.st_mode):
        from tract_core.saving import kind_of

        return Distrusted(f"it is {kind_of(status.st_mode)}", where=path)
    if sys.platform != "win32" and status.st_nlink > 1:
        return Distrusted(f"it has {status.st_nlink} names (hard links)", where=path)
    return _distrusted(path, status)


def _distrusted(path: str, status: os.stat_result, *, on_the_way: bool = False) -> Distrusted | None:
    """Why others may write to what is there. ``on_the_way``: it is a part of a path, and not where that leads."""
    if sys.platform == "win32":
        return None
    if status.st_uid not in {0, os.geteuid()}:
        return Distrusted(f"it belongs to user {status.st_uid}", where=path)
    is_shared = on_the_way and stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & _OTHERS and not is_shared and not stat.S_ISLNK(status.st_mode):  # a link has no mode
        return Distrusted(f"its mode is {stat.S_IMODE(status.st_mode):04o}", where=path)
    return None
