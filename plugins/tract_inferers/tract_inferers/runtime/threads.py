"""Which brain runs in which thread, decided from what their runs are expected to take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

import numpy as np

from tract_core.errors import InputError
from tract_core.machine import processors_here

T = TypeVar("T")


def assigned(expected: Iterable[tuple[T, float]], budget: float, threads: int) -> list[list[T]]:
    """What each thread is to run, one after the other, in at most ``budget`` seconds.

    ``expected``: who wants to run, and the seconds that it should take, in the order in which they are asked. The first
    one always runs; each other one is given to the thread with least to do, where that has time left and it fits. Those
    that should take no time, as nothing is known of them, are spread evenly.
    """
    lines: list[list[T]] = [[] for _ in range(threads)]
    loads = [0.0] * threads
    for one, seconds in expected:
        thread = min(range(threads), key=lambda one: (loads[one], len(lines[one])))
        if not lines[0] or (loads[thread] < budget and loads[thread] + seconds <= budget):
            lines[thread].append(one)
            loads[thread] += seconds
    return lines


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(processors_here())


def checked_threads(threads: object) -> int:
    """A number of threads; ``None`` is the cores that this process may use. Raises InputError for what is none."""
    if threads is None:
        return usable_cores()
    if not isinstance(threads, (int, np.integer)) or isinstance(threads, bool) or threads < 1:
        raise InputError(f"is {threads!r:.60}, wanted an integer from 1 on, or None for all cores", where="threads")
    return int(cast("int", threads))
