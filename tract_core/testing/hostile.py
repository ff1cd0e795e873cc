"""What tests of hostile files are held to, bounded memory and time, and how they act as other users."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")

SECONDS: Final = 10
MEMORY: Final = 1 << 30
STUCK: Final = 120
"""Seconds after which a test does not come back."""


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Generator[None]:
    """Inside, a `MemoryError` meets who asks for more than ``memory`` bytes, an AssertionError who takes too long.

    Seconds are those that processors work for the process, so that others on the machine make no test fail. Inside
    another one, as the files of one test are, each has its own time. Nobody is held to anything but on Linux.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        yield
        return
    import resource

    status = Path("/proc/self/statm")
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


def as_user(user: int, act: Callable[[], T]) -> T:
    """What ``act`` returns where it is called by another user, who is in no group but one of his own: a process.

    Only root can do that. Raises AssertionError, with the traceback, where ``act`` raises anything; NotImplementedError
    on Windows, which does not fork.
    """
    if sys.platform == "win32":
        raise NotImplementedError("Windows does not fork")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(user, act, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    came_back, result = pickle.loads(told)
    assert came_back, f"user {user}: {result}"
    return result


def _answer(user: int, act: Callable[[], object], writing: int) -> NoReturn:
    assert sys.platform != "win32", "there is no child"
    try:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            told = pickle.dumps((True, act()))
        except BaseException:  # whatever it is, it is for whoever waits
            told = pickle.dumps((False, traceback.format_exc()))
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(told)
    finally:
        os._exit(0)
