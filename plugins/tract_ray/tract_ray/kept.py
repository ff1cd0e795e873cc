"""What a process has prepared, so that several predictors of one model share it, and one that comes again finds it."""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import TypeVar

T = TypeVar("T")

MOST = 4
"""Models that are kept; predictors hold their own, however many there are."""


class KeptModels:
    """The last few things that were made, by key. Two threads that want the same wait for each other."""

    def __init__(self, most: int = MOST) -> None:
        """``most``: how many."""
        self._most = most
        self._made: OrderedDict[Hashable, object] = OrderedDict()
        self._lock = Lock()
        self._making: dict[Hashable, Lock] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept under ``key``, or what ``make`` gives, whose errors come through."""
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                found = self._made.get(key)
            made = found if found is not None else make()
            self._keep(key, made)
        return made  # pyright: ignore[reportReturnType]: what was made under this key is of this type

    def _keep(self, key: Hashable, made: object) -> None:
        with self._lock:
            self._made[key] = made
            self._made.move_to_end(key)
            while len(self._made) > self._most:
                old, _ = self._made.popitem(last=False)
                self._making.pop(old, None)

    def renew_locks(self) -> None:
        """For a process that was forked while another thread held a lock, which is not there any more."""
        self._lock, self._making = Lock(), {}


MODELS = KeptModels()
"""Those of this process."""

if sys.platform != "win32":  # which does not fork
    os.register_at_fork(after_in_child=MODELS.renew_locks)
