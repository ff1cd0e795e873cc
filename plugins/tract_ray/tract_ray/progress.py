"""Who is told how many rows were scored."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tract_ray.settings import Progress

EVERY: Final = 5.0
"""Seconds between two lines of the log, at least."""

LOG: Final = logging.getLogger("tract_ray")


def progress_of(progress: Progress) -> Callable[[int], None]:
    """What is called with the rows of each batch."""
    if progress is False:
        return _nobody
    return ProgressCount(_Logged() if progress is True else progress)


def _nobody(rows: int) -> None:
    """Nobody is told."""


class ProgressCount:
    """Counts rows from the first batch on, and tells them."""

    def __init__(self, tell: Callable[[int, float], object]) -> None:
        """``tell``: is called with the rows and the seconds so far."""
        self._tell, self._rows, self._begin, self._lock = tell, 0, perf_counter(), Lock()

    def __call__(self, rows: int) -> None:
        """So many rows are done."""
        with self._lock:
            self._rows += rows
            self._tell(self._rows, perf_counter() - self._begin)


class _Logged:
    """A line every few seconds."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, rows: int, seconds: float) -> None:
        if seconds - self._last >= EVERY:
            self._last = seconds
            LOG.info("%d rows in %.0f s: %.1f rows a second", rows, seconds, rows / seconds)
