"""The threads that run programs together with the one that calls: one pool per process, asleep between runs.

Nobody has two: a run that finds the pool busy, as another thread runs a model, goes on alone, with the same results. A
process that was forked makes a pool of its own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final

from tract_core.errors import InputError

VARIABLE: Final = "TRACT_THREADS"

Job = partial[None]


class Pool:
    """Threads that wait for something to do. Made as they are needed, and never more than were asked for."""

    def __init__(self) -> None:
        self._busy = Lock()
        self._queues: list[SimpleQueue[Job]] = []

    def run(
        self, threads: int, call: Callable[..., None], before: Sequence[int], after: Sequence[int], kept: Any
    ) -> None:
        """Have ``call(*before, thread, threads, *after)`` done by so many threads, of which the caller is number 0.

        ``call`` is a native function (see `_all_at_once`), in which each waits for the others, so that the calls end
        together. Where the other threads are busy, or the system allows no more, there are fewer. ``kept``: what is not
        to be freed before the last of them ends.
        """
        if threads < 2 or not self._busy.acquire(blocking=False):
            call(*before, 0, 1, *after)
            return
        try:
            threads = self._made(threads)
            jobs = [partial(call, *before, thread, threads, *after) for thread in range(threads)]
            for job in jobs[1:]:
                job.kept = kept  # pyright: ignore[reportAttributeAccessIssue] # partials take any
            _all_at_once(
                [*(partial(queue.put, job) for queue, job in zip(self._queues, jobs[1:], strict=False)), jobs[0]]
            )
        finally:
            self._busy.release()

    def _made(self, threads: int) -> int:
        """How many threads there are for a run, with the caller."""
        with suppress(RuntimeError):  # the system allows no more
            while len(self._queues) < threads - 1:
                self._queues.append(_started(len(self._queues) + 1))
        return min(threads, len(self._queues) + 1)


def _all_at_once(jobs: Sequence[Job]) -> None:
    """Call them all, one after the other, with nothing of Python between.

    Once one thread was told to begin, it waits for all others, the caller among them. A signal such as Ctrl-C raises
    its error between two steps of Python, and there is none from the first call to the last.
    """
    deque(map(Job.__call__, jobs), maxlen=0)


def _started(number: int) -> SimpleQueue[Job]:
    queue: SimpleQueue[Job] = SimpleQueue()

    def wait() -> None:
        while True:
            queue.get()()

    Thread(target=wait, name=f"tract-cpu-{number}", daemon=True).start()
    return queue


_POOL: Final = [Pool()]


def pool() -> Pool:
    """The pool of this process."""
    return _POOL[0]


def _after_fork() -> None:
    _POOL[0] = Pool()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)


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
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = {_siblings(cpu) for cpu in usable}
    return max(1, min(len(cores), quota()))


def _siblings(cpu: int) -> str:
    """The processors that share a core with one, as the system writes them; its own number where it does not say."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def quota(root: Path = Path("/sys/fs/cgroup")) -> int:
    """How many processors the container may keep busy, rounded up; very many where nothing limits it.

    Source: the files ``cpu.max`` (cgroup v2), ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us`` (v1).
    """
    unlimited = 1 << 20
    try:
        share, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            share = (root / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return unlimited
    if not share.isdigit() or not period.isdigit() or not int(period):
        return unlimited
    return max(1, -(-int(share) // int(period)))
