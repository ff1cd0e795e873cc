"""How long a function takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(run: Callable[[], object], at_least: float) -> float:
    """The mean time of a call, of as many calls as take ``at_least`` so many seconds together."""
    begin, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - begin) < at_least:
        run()
        count += 1
    return passed / count


def wait_until_idle(pause: float = 0.01, most: float = 0.2) -> None:
    """Wait until no other thread of this process computes, looking each ``pause`` seconds, ``most`` of them at most.

    Threads of an engine wait for more work after a run, without giving their processor to anybody: those of ONNX
    Runtime for 20 to 40 ms. Whatever ran meanwhile on as many threads would share processors with them. Shorter pauses
    would miss them: the system adds up the time of a thread every few milliseconds.
    """
    end = time.perf_counter() + most
    while time.perf_counter() < end:
        before, begin = time.process_time(), time.perf_counter()
        time.sleep(pause)
        if time.process_time() - before < 0.2 * (time.perf_counter() - begin):
            return
