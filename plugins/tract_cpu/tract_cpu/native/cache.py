"""Object code, kept on disk between processes.

A file per kernel, named by what the kernel is made of: its plan, the sources of this distribution, the instruction set,
and the version of llvmlite. A file begins with the digest of the rest, so that one that was cut off or changed is not
used. It is written beside its place and moved there, so that processes never see half of it. What cannot be read or
written is left: the kernel is compiled again.

What is kept is executed. So a folder in which anybody else may write is not used.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

import llvmlite  # pyright: ignore[reportMissingTypeStubs] # it has none

from tract_core.frozen import frozen
from tract_cpu.isa import Isa

VARIABLE: Final = "TRACT_CACHE"
ONLY_HERE: Final = "\0"
"""Is in the text of what only this process can tell from everything else."""
_DIGEST_BYTES: Final = 16


@frozen
class Key:
    """What tells one kernel from every other. ``kept``: whether that holds for other processes too."""

    digest: str
    kept: bool


class CacheWarning(UserWarning):
    """Compiled code is not kept."""


@frozen
class Cache:
    """``folder``: where the files are; ``None`` keeps none."""

    folder: Path | None

    @staticmethod
    def at(folder: Path | None) -> Cache:
        """The cache in a folder, which is made if need be; one that keeps nothing, with a warning, where others write.

        Whoever can write there decides what is executed here.
        """
        if folder is None:
            return Cache(None)
        with suppress(OSError):  # then nothing can be kept, which `put` finds too
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        open_to_others = _open_to_others(folder)
        if open_to_others is None:
            return Cache(folder)
        warnings.warn(
            f"compiled kernels are not kept: others may write to {str(open_to_others)!r}, and what is kept in "
            f"{str(folder)!r} is executed (hint: chmod go-w, or another folder in {VARIABLE}; {VARIABLE}=0 keeps none)",
            CacheWarning,
            stacklevel=2,
        )
        return Cache(None)

    def get(self, key: Key) -> bytes | None:
        """The object code kept under a key, or ``None``."""
        if self.folder is None or not key.kept:
            return None
        try:
            content = self._file(key).read_bytes()
        except OSError:
            return None
        digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return code if digest == _digest(code) else None

    def put(self, key: Key, code: bytes) -> None:
        """Keep object code, if that can be done."""
        if self.folder is None or not key.kept:
            return
        path = self._file(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_digest(code) + code)
                os.replace(beside, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside)
                raise

    def _file(self, key: Key) -> Path:
        assert self.folder is not None  # the callers asked
        return self.folder / key.digest[:2] / f"{key.digest}.o"


def cache_here() -> Cache:
    """The cache in the folder that the environment names by now."""
    return _opened(named_folder())


@cache
def _opened(folder: Path | None) -> Cache:
    return Cache.at(folder)


def named_folder() -> Path | None:
    """The folder that ``TRACT_CACHE`` names; ``None`` where it is ``0`` or empty; else that of the user's caches."""
    named = os.environ.get(VARIABLE)
    if named in {"", "0"}:
        return None
    try:
        return (Path(named).expanduser() if named else _users_caches()) / "tract-cpu"
    except RuntimeError:  # there may be no home
        return None


def _open_to_others(folder: Path) -> Path | None:
    """The folder, or the one above it, that belongs to somebody else or that others may write to; ``None`` for none.

    In a folder with the sticky bit, such as ``/tmp``, nobody moves what belongs to others. Where there are no owners
    of this kind, as on Windows, nothing is said.
    """
    if not hasattr(os, "getuid"):
        return None
    with suppress(OSError):  # there is no such folder
        whole = folder.resolve(strict=True)
        for place in (whole, *whole.parents):
            found = place.stat()
            writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and (
                place == whole or not found.st_mode & stat.S_ISVTX
            )
            if found.st_uid not in {0, os.getuid()} or writable:
                return place
    return None


def _users_caches() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _digest(code: bytes) -> bytes:
    return blake2b(code, digest_size=_DIGEST_BYTES).digest()


def key_of(text: str, isa: Isa, sources: str) -> Key:
    """The key of a kernel. ``text``: all that its plan says; ``sources``: the digest of the code that writes it."""
    whole = "\n".join((text, repr(isa), llvmlite.__version__, sources))
    return Key(blake2b(whole.encode(), digest_size=20).hexdigest(), ONLY_HERE not in whole)
