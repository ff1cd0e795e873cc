"""What tests of hostile files are held to: bounded memory and time."""

from __future__ import annotations

import faulthandler
import resource
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

SECONDS: Final = 10
MEMORY: Final = 1 << 30
STUCK: Final = 120
"""Seconds after which a test does not come back."""


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Generator[None]:
    """Inside, a `MemoryError` meets who asks for more than ``memory`` bytes, an AssertionError who takes too long.

    Seconds are those that processors work for the process, so that others on the machine make no test fail. Inside
    another one, as the files of one test are, each has its own time.
    """
    status = Path("/proc/self/statm")
    limited = status.exists() and threading.current_thread() is threading.main_thread()
    if not limited:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(status.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, before[1]))
    handler = signal.signal(signal.SIGPROF, _too_long)
    left, _ = signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)
        signal.signal(signal.SIGPROF, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def held_to_limits(request: pytest.FixtureRequest) -> Generator[None]:
    """Inside, a test that is marked ``hostile`` is `bounded`; one that does not come back ends the test run."""
    if request.node.get_closest_marker("hostile") is None:
        yield
        return
    faulthandler.dump_traceback_later(STUCK, exit=True)
    try:
        with bounded():
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _too_long(*_: object) -> None:
    raise AssertionError(f"it takes longer than {SECONDS} seconds")
