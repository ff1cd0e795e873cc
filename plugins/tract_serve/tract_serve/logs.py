"""What the server says of itself: a line for each event, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, Final

from tract_core.texts import printable, printable_lines

LOGGER: Final = logging.getLogger("tract_serve")


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Say that something has happened. ``fields``: what there is to know of it."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """A line of JSON for each event: ``time``, ``level``, ``event``, and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told = {"time": self.formatTime(record), "level": record.levelname.lower(), "event": record.getMessage()}
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told | getattr(record, "fields", {}), default=str)


class Texts(logging.Formatter):
    """A line of text for each event."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, in which nothing steers a terminal."""
        fields = " ".join(f"{name}={value}" for name, value in getattr(record, "fields", {}).items())
        line = printable(f"{self.formatTime(record, '%H:%M:%S')} {record.getMessage()} {fields}".rstrip())
        return f"{line}\n{printable_lines(self.formatException(record.exc_info))}" if record.exc_info else line


def log_to_stderr(*, as_json: bool, level: str = "info") -> None:
    """Have events go to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else Texts())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False
