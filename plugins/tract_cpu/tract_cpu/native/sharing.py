"""Whether runs are shared with other threads, or done alone: whichever took less time when both were tried last.

What it takes to share depends on more than the model: on how far the cores are from each other, which may change from
one second to the next where the machine is a virtual one, on what else they do, and on how long helpers have slept. A
step of a recurrent network is shared in a third less time on neighbouring cores, and takes half as long again where
lines of the cache go through memory. No count of operations tells this, so it is tried, now and then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tract_cpu.native.objects import address_of

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

SHARES, LEFT = range(2)
"""What native code sees: whether runs are shared, and how many there are before both ways are tried again."""

TRIES: Final = 4
"""How many runs a trial has of each kind. The first one, which gets threads or caches ready, does not count."""

FIRST: Final = 32
"""After how many runs both ways are tried for the first time."""

LEAST: Final = 20_000_000
"""How many nanoseconds lie between trials at least, as their runs go the long way through Python."""

_PATIENCE: Final = 20_000_000
"""How many nanoseconds of runs a trial waits for helpers to wake up, which a busy interpreter holds up."""

_LOSS: Final = 100
"""A trial comes when what the last one lost is at most one in so many parts of the time since then."""

_BETTER: Final = 0.97
"""Below which share of its time another way is taken."""


class Sharing:
    """How the runs with certain sizes are done.

    Many threads may use one: their trials may mix, so that the slower way is taken until the next one.
    ``address``: of what native code sees.
    """

    def __init__(self) -> None:
        self._memory: Array = np.array([1, FIRST], np.int64)
        self._now = memoryview(self._memory.data)
        self._times: list[int] = []
        self._patience = _PATIENCE
        self.address = address_of(self._memory)

    def begin(self) -> bool:
        """Whether the next run is shared. `took` is told of each."""
        now = self._now
        now[LEFT] = max(now[LEFT] - 1, 0)
        trial = not now[LEFT] and len(self._times) >= TRIES
        return bool(now[SHARES]) != trial

    def took(self, time: int, *, helped: bool = True) -> None:
        """How long the run took that began last, in nanoseconds. ``helped``: whether all who share it were awake."""
        if self._now[LEFT]:
            return
        if not helped and self._patience > 0:
            self._patience -= max(time, 1)
            return
        self._times.append(time)
        if len(self._times) >= 2 * TRIES:
            self._decide(_usual(self._times[:TRIES]), _usual(self._times[TRIES:]))

    def _decide(self, one: int, other: int) -> None:
        """Go on in one way, as before, or in the other, by the times that they took."""
        now = self._now
        self._times.clear()
        self._patience = _PATIENCE
        if other < one * _BETTER:
            now[SHARES] = 1 - now[SHARES]
        now[LEFT] = max(FIRST, LEAST // max(one, 1), _LOSS * TRIES * (other - one) // max(one, 1))


def _usual(times: list[int]) -> int:
    """The median of the times that count."""
    return sorted(times[1:TRIES])[TRIES // 2 - 1]


ALWAYS: Final = np.array([1, 1 << 62], np.int64)
"""What native code sees where there is nothing to try."""
