"""The threads that help to run programs: one pool per process, asleep but for a while after each run.

Nobody has two: a run that finds the helpers busy, as another thread runs a model, goes on alone, with the same results.
Nor does a run wait for helpers to wake up. A process that was forked starts threads of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from tract_core.errors import InputError
from tract_cpu.cores import cores_here
from tract_cpu.native.executor import FIRST_HELPER, HELPS, LINE_WORDS, TOLD
from tract_cpu.native.objects import address_of

if TYPE_CHECKING:
    from queue import SimpleQueue

VARIABLE: Final = "TRACT_THREADS"

MOST_HELPERS: Final = 1 << 10
"""How many threads a pool has at most, besides those that call."""

Help = Callable[[int, int], None]
"""What a helper does while it is awake, given the address of the memory of the team, and its own number."""


class Pool:
    """Threads that wait for something to do. Made as they are needed, and never more than were asked for.

    ``address``: of the memory by which native code offers them work, and they say that they are awake.
    """

    def __init__(self) -> None:
        self._memory = np.zeros(FIRST_HELPER + MOST_HELPERS * LINE_WORDS, np.int64)
        self._awake = memoryview(self._memory.data)[FIRST_HELPER::LINE_WORDS]
        self._queues: list[SimpleQueue[Help]] = []
        self.address = address_of(self._memory)

    def run(
        self, threads: int, call: Callable[..., None], steps: Sequence[int], arrays: Sequence[int], help_: Help
    ) -> None:
        """Have ``call(*steps, team, *arrays)`` done, an executor, with the help of so many threads less the caller.

        Those that are asleep are told to help, and do so when they are awake. Where the system allows no more threads,
        there are fewer.
        """
        if threads < 2:
            call(*steps, 0, *arrays)
            return
        awake = self._awake
        for number in range(self._made(threads - 1)):
            if not awake[number]:
                awake[number] = TOLD  # so it is told once; it says so itself when it goes back to sleep
                self._queues[number].put(help_)
        call(*steps, self.address, *arrays)

    def helps(self, threads: int) -> bool:
        """Whether all helpers are awake that take part in a run of so many threads, as far as there are so many."""
        return all(self._awake[number] == HELPS for number in range(min(threads - 1, len(self._queues))))

    def forget(self) -> None:
        """There are no threads any more."""
        self._queues.clear()
        self._memory[:] = 0

    def _made(self, count: int) -> int:
        """How many helpers there are of those that are wanted."""
        count = min(count, MOST_HELPERS)
        with suppress(RuntimeError):  # the system allows no more
            while len(self._queues) < count:
                self._queues.append(_started(self.address, len(self._queues)))
        return min(count, len(self._queues))


def _started(address: int, number: int) -> SimpleQueue[Help]:
    from queue import SimpleQueue  # for who has threads
    from threading import Thread

    queue: SimpleQueue[Help] = SimpleQueue()

    def wait() -> None:
        while True:
            queue.get()(address, number)

    Thread(target=wait, name=f"tract-cpu-{number + 1}", daemon=True).start()
    return queue


_POOL: Final = [Pool()]


def pool() -> Pool:
    """The pool of this process."""
    return _POOL[0]


if sys.platform != "win32":  # which does not fork
    os.register_at_fork(after_in_child=lambda: pool().forget())


def threads_here() -> int:
    """How many threads a run uses by default.

    What ``TRACT_THREADS`` says; else one per core that this process may use, within the share of time that its
    container has. Raises InputError where the variable is no positive number.
    """
    named = os.environ.get(VARIABLE, "")
    if named:
        if not named.isdigit() or int(named) < 1:
            raise InputError(f"{VARIABLE} is {named!r}, wanted a number of threads, 1 or more")
        return int(named)
    return max(1, min(cores_here(), quota()))


def quota(root: str | os.PathLike[str] = "/sys/fs/cgroup") -> int:
    """How many processors the container may keep busy, rounded up; very many where nothing limits it.

    Source: the files ``cpu.max`` (cgroup v2), ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us`` (v1).
    """
    unlimited = 1 << 20
    try:
        share, period = _said(root, "cpu.max").split()
    except (OSError, ValueError):
        try:
            share, period = (_said(root, "cpu", f"cpu.cfs_{what}_us").strip() for what in ("quota", "period"))
        except OSError:
            return unlimited
    if not share.isdigit() or not period.isdigit() or not int(period):
        return unlimited
    return max(1, -(-int(share) // int(period)))


def _said(*path: str | os.PathLike[str]) -> str:
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()
