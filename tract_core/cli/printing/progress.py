"""Show on standard error that something takes long: what is being done, and for how many seconds.

Nothing is shown for the first half second, where standard error is no terminal, and with ``--machine-friendly``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PATIENCE: Final = 0.5
"""Seconds of silence at first."""

CLEAR_LINE: Final = "\r\x1b[2K"
SHOW_CURSOR: Final = "\x1b[?25h"


class ProgressLine:
    """One line that comes and goes."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._text = ""
        self._begun = 0.0
        self._bar: Bar | None = None
        self._lock = threading.Lock()

    @contextmanager
    def running(self, text: str) -> Generator[None]:
        """Around something that may take long; within such a thing, it is what is being done meanwhile."""
        if self._silent or not sys.stderr.isatty():
            yield
            return
        around = self._text
        if around:
            self.say(text)
            try:
                yield
            finally:
                self.say(around)
            return
        self._text = text
        self._begun = monotonic()
        timer = threading.Timer(PATIENCE, self._show)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._text = ""
                if self._bar is not None:
                    self._bar.stop()
                    self._bar = None

    def say(self, text: str) -> None:
        """What is being done now."""
        with self._lock:
            self._text = text
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], description=text)

    def _show(self) -> None:
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        from tract_core.cli.guard import unguarded
        from tract_core.cli.printing.terminal import SafeConsole

        encoding: str = getattr(unguarded(sys.stderr), "encoding", "")
        spinner = "dots" if "utf" in encoding.lower() else "line"
        columns = SpinnerColumn(spinner), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        with self._lock:
            if self._text:
                # What is printed goes to standard output, which may be a file.
                bar = Bar(
                    *columns,
                    console=SafeConsole(highlight=False, emoji=False, stderr=True),
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                    get_time=monotonic,
                )
                task = bar.add_task(self._text, total=None)
                bar.tasks[task].start_time = self._begun
                bar.start()
                self._bar = bar


def restore_terminal() -> None:
    """Take the line away and show the cursor again, before the process ends at once."""
    from tract_core.cli.guard import unguarded

    if sys.stderr.isatty():
        unguarded(sys.stderr).write(CLEAR_LINE + SHOW_CURSOR)
        sys.stderr.flush()
