"""Who compiles which kernel, where several processes start together: each is compiled by one, and the others wait.

A claim is a lock on one byte of a file in the folder of the cache; which byte, the key of the kernel says. Locks end
with their process, whatever becomes of it, and leave nothing behind. The file is the user's alone, so nobody else can
hold one. Whoever waits for a process that is stopped, or works too slowly, compiles after a while; and where nothing
can be locked, as on some file servers, on Windows, or where nothing can be written, everybody compiles at once.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from time import monotonic, sleep
from typing import Final

FILE: Final = "lock"
"""The name of the file of locks. It stays empty."""

PATIENCE: Final = 5.0
"""Seconds without anything new, after which nobody is waited for any more. A kernel takes less than one."""

_PAUSE: Final = 0.01
_DIGITS: Final = 15
"""Of the digest of a key, in base 16: they make a place in a file."""


class Claims:
    """What this process compiles for all. May be used by many threads of it; they do not exclude each other."""

    def __init__(self, descriptor: int | None) -> None:
        """``descriptor``: of the file of locks; ``None`` where nothing can be locked."""
        self._descriptor = descriptor
        self._heeds_others = descriptor is not None and sys.platform != "win32"
        self._waited_for, self._last_news = 0, 0.0

    def take(self, digest: str) -> bool:
        """Whether it is on this process to compile a kernel: nobody else does, or nobody can tell, or is waited for."""
        try:
            self._lock(digest, take=True)
        except (BlockingIOError, PermissionError):
            return not self._heeds_others
        except (OSError, ImportError):  # locks are not for this file system, or this system
            self.give_up()
        return True

    def give_back(self, digest: str) -> None:
        """A kernel is where others find it, or cannot be compiled."""
        with suppress(OSError, ImportError):
            self._lock(digest, take=False)

    def _lock(self, digest: str, *, take: bool) -> None:
        if self._descriptor is not None and sys.platform != "win32":
            import fcntl

            how = fcntl.LOCK_EX | fcntl.LOCK_NB if take else fcntl.LOCK_UN
            fcntl.lockf(self._descriptor, how, 1, int(digest[:_DIGITS], 16))

    def give_up(self) -> None:
        """Others are not waited for any more."""
        self._heeds_others = False

    def wait_for(self, kernels: int) -> bool:
        """Wait a moment for others, who have so many kernels to compile: whether anything is waited for.

        That ends when there has been nothing new for too long.
        """
        now = monotonic()
        if kernels != self._waited_for:
            self._waited_for, self._last_news = kernels, now
        if not kernels or now - self._last_news > PATIENCE:
            self.give_up()
            return False
        sleep(_PAUSE)
        return True
