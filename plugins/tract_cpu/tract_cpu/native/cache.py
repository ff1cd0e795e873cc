"""Object code, kept on disk between processes.

A file per kernel, named by what the kernel is made of: its plan, the sources of this distribution, the instruction set,
and the version of LLVM. A file begins with the digest of the rest, so that one that was cut off or changed is not used.
It is written beside its place and moved there, so that processes never see half of it. What cannot be read or written
is left: the kernel is compiled again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

from tract_cpu.isa import Isa
from tract_cpu.llvm import binding as llvm

VARIABLE: Final = "TRACT_CACHE"
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Cache:
    """``folder``: where the files are; ``None`` keeps none."""

    folder: Path | None

    @staticmethod
    def of_environment() -> Cache:
        """The folder that ``TRACT_CACHE`` names; none where it is ``0`` or empty; else that of the user's caches."""
        named = os.environ.get(VARIABLE)
        if named is not None:
            return Cache(Path(named).expanduser() / "tract-cpu" if named not in {"", "0"} else None)
        with suppress(RuntimeError):  # there may be no home
            return Cache(_users_caches() / "tract-cpu")
        return Cache(None)

    def get(self, key: str) -> bytes | None:
        """The object code kept under a key, or ``None``."""
        if self.folder is None:
            return None
        try:
            content = self._file(key).read_bytes()
        except OSError:
            return None
        digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return code if digest == _digest(code) else None

    def put(self, key: str, code: bytes) -> None:
        """Keep object code, if that can be done."""
        if self.folder is None:
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

    def _file(self, key: str) -> Path:
        assert self.folder is not None  # the callers asked
        return self.folder / key[:2] / f"{key}.o"


def _users_caches() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _digest(code: bytes) -> bytes:
    return blake2b(code, digest_size=_DIGEST_BYTES).digest()


def key_of(text: str, isa: Isa, sources: str) -> str:
    """The key of a kernel. ``text``: all that its plan says; ``sources``: the digest of the code that writes it."""
    whole = "\n".join((text, repr(isa), ".".join(map(str, llvm.llvm_version_info)), sources))
    return blake2b(whole.encode(), digest_size=20).hexdigest()


@cache
def digest_of_sources(folder: Path) -> str:
    """What changes when a Python file in a folder, or below it, does."""
    state = blake2b(digest_size=_DIGEST_BYTES)
    for path in sorted(folder.rglob("*.py")):
        state.update(path.name.encode() + path.read_bytes())
    return state.hexdigest()
