"""A lock per brain. Who would wait in a circle gets an error in place of a deadlock."""

from __future__ import annotations

import threading
from typing import Final

from tract_core.errors import InputError

_CIRCLE: Final = "an inferer can ask the runtime for other brains, not for its own, nor two for each other"


class Locks:
    """Which threads wait for which brains of one runtime."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: dict[int, BrainLock] = {}

    def begin_waiting(self, wanted: BrainLock) -> None:
        """Note that this thread is going to wait. Raises InputError where who it waits for waits for it.

        Who closes a circle comes here last, when all others in it are known to wait.
        """
        me = threading.get_ident()
        with self._guard:
            lock: BrainLock | None = wanted
            while lock is not None:
                if lock.owner == me:
                    raise InputError("it is running, and waits for this call", where=wanted.name, hint=_CIRCLE)
                lock = None if lock.owner is None else self._waiting.get(lock.owner)
            self._waiting[me] = wanted

    def end_waiting(self) -> None:
        """Note that this thread waits no longer."""
        with self._guard:
            del self._waiting[threading.get_ident()]


class BrainLock:
    """The lock of one brain. ``name``: what messages call it. ``owner``: the thread that has it.

    ``with lock`` waits until the brain is free, and takes it; it raises InputError for a circle.
    """

    __slots__ = ("_lock", "_locks", "name", "owner")

    def __init__(self, name: str, locks: Locks) -> None:
        self.name = name
        self.owner: int | None = None
        self._lock = threading.Lock()
        self._locks = locks

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._locks.begin_waiting(self)
            try:
                self._lock.acquire()
            finally:
                self._locks.end_waiting()
        self.owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self.owner = None
        self._lock.release()
