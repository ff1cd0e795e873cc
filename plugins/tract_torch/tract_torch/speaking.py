"""How much is told while something is exported: the logger ``tract_torch`` speaks from a level on, for that time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tract_core.errors import InputError

logger: Final = logging.getLogger("tract_torch")


class _Levels:
    """Those that exports asked for which are not done yet. The logger has the one that tells most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[int] = []
        self._before = logging.NOTSET

    def add(self, level: int) -> None:
        with self._lock:
            if not self._asked:
                self._before = logger.level
            self._asked.append(level)
            logger.setLevel(min(self._asked))

    def remove(self, level: int) -> None:
        with self._lock:
            self._asked.remove(level)
            logger.setLevel(min(self._asked, default=self._before))


_LEVELS: Final = _Levels()


@contextmanager
def speaking(level: int | str) -> Generator[None]:
    """Inside, the logger speaks from a level on; afterwards as before. Raises InputError for what is no level."""
    try:
        wanted = logging.Logger("", level).level
    except (ValueError, TypeError):
        raise InputError(f"log_level is {level!r}, wanted a level of logging, as logging.INFO") from None
    _LEVELS.add(wanted)
    try:
        yield
    finally:
        _LEVELS.remove(wanted)
