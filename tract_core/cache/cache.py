"""Object code and prepared models, kept on disk between processes.

A file per kernel, named by what the kernel is made of: its plan, the sources of whoever writes it, the instruction set,
and the version of llvmlite; and one per prepared model (`tract_core.prepared`). A file of a kernel begins with the
digest of its name and of the rest, so that one that was cut off, changed, or put in the place of another one is not
used. Files are written beside their places and moved there, so that processes never see half of one. What cannot be
read or written is left: it is made again.

What is kept is executed. So the folder and each file in it are only used where nobody else can have written them
(`tract_core.trusted_files`), each time anew; what others may have written is told once, and left where it is.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from mmap import ACCESS_READ, mmap
from re import fullmatch
from typing import TYPE_CHECKING, Final

from tract_core.cache.entries import ENDING, LARGEST, on_disk
from tract_core.digests import blake2b
from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_core.trusted_files import Distrusted, TrustedFolder, trusted_folder

if TYPE_CHECKING:
    from tract_core.cache.claims import Claims

VARIABLE: Final = "TRACT_CACHE"
SIZE_VARIABLE: Final = "TRACT_CACHE_SIZE"

MOST_BYTES: Final = 4_000_000_000
"""How much is kept by default. A kernel takes some kilobytes, a prepared model as much as its weights."""

ONLY_HERE: Final = "\0"
"""Is in the text of what only this process can tell from everything else."""

_DIGEST_BYTES: Final = 16
_FORMAT: Final = b"tract object 1"
"""Of the files. What has another one is no entry to us."""

_OTHERS: Final = 0o077
"""What others may do with a file, in its mode."""

_PART: Final = 16
"""A process looks at how much is kept whenever it has added one part in so many of what may be."""

_PART_OF_ONE: Final = 4
"""What one file may take of all that may be kept: one part in so many."""

_UNITS: Final = "KMGT"


@frozen
class Key:
    """What tells one kernel, or prepared model, from every other. ``kept``: whether that holds for other processes too.

    ``digest``: a hash of all of it. ``ending``: of the name of its file.
    """

    digest: str
    kept: bool
    ending: str = ENDING

    @property
    def file(self) -> str:
        """The name of its file."""
        return self.digest + self.ending


class CacheWarning(UserWarning):
    """Compiled code is not kept, or not used."""


@frozen
class Cache:
    """``folder``: where the files are, an absolute path; ``None`` keeps none. ``most``: bytes that are kept, about."""

    folder: str | None
    most: int = MOST_BYTES

    @property
    def largest(self) -> int:
        """Bytes that one prepared model may take."""
        return self.most // _PART_OF_ONE

    @staticmethod
    def at(folder: str | os.PathLike[str] | None, most: int = MOST_BYTES) -> Cache:
        """The cache in a folder; one that keeps nothing, with a warning, where others could exchange it.

        Whoever can write there decides what is executed here. Nor is anything kept where the path leads nowhere.
        """
        with Cache(None if folder is None else os.fspath(folder), most).opened(make=True) as found:
            return Cache(None) if found is None else Cache(found.path, most)

    def get(self, key: Key) -> bytes | None:
        """The object code kept under a key, or ``None``."""
        return self.find([key]).get(key)

    def find(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """The object code of those keys under which some is kept."""
        found: dict[Key, bytes] = {}
        with self.opened() as folder:
            for key in keys:
                with _leaving_it():
                    code = _read(folder, key) if folder is not None and key.kept else None
                    if code is not None:
                        found[key] = code
        return found

    def put(self, key: Key, code: bytes) -> bool:
        """Keep object code, if that can be done: whether others find it now. What was unused longest makes room."""
        if not key.kept or len(code) + _DIGEST_BYTES > LARGEST:
            return False
        with self.opened(make=True) as folder, _leaving_it():
            if folder is not None:
                folder.write(key.file, [_digest(key, code), code])
                self._make_room(folder, on_disk(len(code)))
                return True
        return False

    def mapped(self, key: Key) -> memoryview | None:
        """What is kept under a key, mapped into memory; whether it is whole is for the caller to tell."""
        with self.opened() as folder, _leaving_it():
            if folder is not None and key.kept:
                with folder.file(key.file) as (descriptor, status):
                    content = mmap(descriptor, status.st_size, access=ACCESS_READ) if status.st_size else b""
                with suppress(OSError):  # as where nothing can be written
                    folder.touch(key.file)
                return memoryview(content)
        return None

    def put_parts(self, key: Key, parts: Sequence[bytes | memoryview]) -> bool:
        """Keep what these pieces make together, unless that is more than a part of all that may be kept.

        Returns whether others find it now. What was unused longest makes room.
        """
        size = sum(map(len, parts))
        if not key.kept or size > self.largest:
            return False
        with self.opened(make=True) as folder, _leaving_it():
            if folder is not None:
                folder.write(key.file, parts)
                self._make_room(folder, on_disk(size))
                return True
        return False

    @contextmanager
    def opened(self, *, make: bool = False) -> Generator[TrustedFolder | None]:
        """The folder, ``make``: made if need be; ``None`` where there is none, or others could exchange it."""
        with ExitStack() as stack:
            found = None
            try:
                if self.folder is not None:
                    found = stack.enter_context(trusted_folder(self.folder, make=make))
            except Distrusted as why:
                _tell_of_folder(self.folder, why)
            except OSError:  # it leads nowhere
                pass
            yield found

    @contextmanager
    def claims(self) -> Generator[Claims]:
        """What this process compiles of what others may want as well. Claims end with the block."""
        from tract_core.cache.claims import FILE, Claims

        with self.opened(make=True) as folder, ExitStack() as stack:
            descriptor = None
            with _leaving_it():
                if folder is not None:
                    found, status = stack.enter_context(folder.file(FILE, os.O_RDWR | os.O_CREAT))
                    descriptor = found if not status.st_mode & _OTHERS else None  # else others may lock it
            yield Claims(descriptor)

    def _make_room(self, folder: TrustedFolder, added: int) -> None:
        """Evict what is too much. It is rarely looked at, as that takes as long as to compile a kernel."""
        part = self.most // _PART
        added += _ADDED.get(folder.path, part)  # nobody has looked yet
        if added > part:
            from tract_core.cache.eviction import evict

            with suppress(OSError):  # as where a folder cannot be listed
                evict(folder, self.most - part)
            added = 0
        _ADDED[folder.path] = added


_ADDED: Final[dict[str, int]] = {}
"""Bytes by folder that this process has added since it looked at how much there is."""


@contextmanager
def _leaving_it() -> Generator[None]:
    """Inside, what cannot be read or written is left, and so is what others may have written, which is told."""
    try:
        yield
    except Distrusted as why:
        _tell_of_file(why)
    except OSError:
        pass


def _read(folder: TrustedFolder, key: Key) -> bytes | None:
    with folder.file(key.file) as (descriptor, status):
        content = os.read(descriptor, status.st_size) if status.st_size <= LARGEST else b""
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if digest != _digest(key, code):
        return None
    with suppress(OSError):  # as where nothing can be written
        folder.touch(key.file)
    return code


def _digest(key: Key, code: bytes) -> bytes:
    return blake2b(code, digest_size=_DIGEST_BYTES, key=key.digest.encode(), person=_FORMAT).digest()


def _tell_of_folder(folder: str | None, why: Distrusted) -> None:
    _tell(
        f"compiled kernels and prepared models are not kept: others may write to {str(why.where)!r} ({why.problem}), "
        f"and what is kept in {folder!r} is executed (hint: chmod go-w and 'tract cache clear', or another folder "
        f"in {VARIABLE}; {VARIABLE}=0 keeps none)"
    )


def _tell_of_file(why: Distrusted) -> None:
    if why.problem not in _TOLD:
        _TOLD.add(why.problem)
        _tell(
            f"{str(why.where)!r} is not used, as what is in this folder is executed: {why.problem} (hint: remove it; "
            "'tract cache' lists all such files)"
        )


_TOLD: Final[set[str]] = set()
"""What was told of some file. Others may have put hundreds there."""


@cache
def _tell(text: str) -> None:
    """Warn, once in a process whatever becomes of warnings."""
    warnings.warn(text, CacheWarning, stacklevel=2)


def cache_here() -> Cache:
    """The cache in the folder that the environment names by now. Raises InputError where a size there is none."""
    return _opened(named_folder(), named_size())


@cache
def _opened(folder: str | None, most: int) -> Cache:
    return Cache.at(folder, most)


def named_folder() -> str | None:
    """The folder that ``TRACT_CACHE`` names; ``None`` where it is ``0`` or empty; else that of the user's caches.

    A relative path is one of the folder in which this process was when it asked for the first time.
    """
    named = os.environ.get(VARIABLE)
    if named in {"", "0"}:
        return None
    found = os.path.expanduser(named) if named else _users_caches()
    if found.startswith("~"):  # there is no home
        return None
    try:
        return os.path.join(_absolute(found), "tract")
    except OSError:  # there is no current folder
        return None


@cache
def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def named_size() -> int:
    """How many bytes ``TRACT_CACHE_SIZE`` says, as ``500M`` or ``1e9``. Raises InputError for what is no size."""
    named = os.environ.get(SIZE_VARIABLE, "")
    if not named:
        return MOST_BYTES
    found = fullmatch(rf"([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]{{1,2}})?) ?(?:([{_UNITS}])(i?))?B?", named)
    if found is None:
        raise InputError(f"{SIZE_VARIABLE} is {named!r}, wanted a number of bytes, as 500M, 2GiB or 1e9")
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** (_UNITS.index(unit) + 1 if unit else 0))


def _users_caches() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches")
    named = os.environ.get("XDG_CACHE_HOME", "")
    return named if os.path.isabs(named) else os.path.expanduser("~/.cache")  # as that standard has it
