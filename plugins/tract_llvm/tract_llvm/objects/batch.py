"""Kernels that are not kept yet: each is compiled here, or by another process that wants it at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from tract_core.limits import check_time, current_budget

if TYPE_CHECKING:
    from tract_core.cache.cache import Cache, Key
    from tract_core.cache.claims import Claims


class Batch:
    """Some kernels, on their way. ``start``: has one compiled here."""

    def __init__(self, cache: Cache, claims: Claims, start: Callable[[Key], Future[bytes]]) -> None:
        self._cache, self._claims, self._start = cache, claims, start
        self._making: dict[Future[bytes], Key] = {}
        self._done: SimpleQueue[Future[bytes]] = SimpleQueue()
        self._made: dict[Key, bytes] = {}

    def compiled(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        """The object files. Those that are made here are put into the cache as soon as they are there.

        Raises what compiling one of them here raises, and LimitExceeded when the time to prepare a model is up.
        """
        left = list(keys)
        while left:
            check_time()
            left = [key for key in left if not self._is_settled(key)]
            self._keep_done()
            if self._claims.wait_for(len(left)):
                self._made |= self._cache.find(left)
                left = [key for key in left if key not in self._made]
        while self._making:
            self._keep(self._next_done())
        return self._made

    def _is_settled(self, key: Key) -> bool:
        """Whether a kernel is there by now, or is being compiled here from now on."""
        if key.kept and not self._claims.take(key.digest):
            return False
        code = self._cache.get(key)
        if code is None:
            made = self._start(key)
            self._making[made] = key
            made.add_done_callback(self._done.put)
            self._keep_done()
        else:
            self._made[key] = code
            self._claims.give_back(key.digest)
        return True

    def _next_done(self) -> Future[bytes]:
        budget = current_budget()
        while True:
            try:
                return self._done.get(timeout=None if budget is None else budget.seconds_left)
            except Empty:
                check_time()

    def _keep_done(self) -> None:
        while not self._done.empty():
            self._keep(self._done.get())

    def _keep(self, made: Future[bytes]) -> None:
        key = self._making.pop(made)
        self._made[key] = code = made.result()
        if key.kept and not self._cache.put(key, code):
            self._claims.give_up()  # who can keep nothing need not wait for others either
        self._claims.give_back(key.digest)
