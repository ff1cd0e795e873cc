"""What PyTorch says besides what it raises is not told: its errors are, in our words."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_LOGGERS: Final = ("torch.export", "torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")
"""Which of PyTorch's loggers write the tracebacks of what is raised anyway."""


class _Others(logging.Filter):
    """Lets through what other threads say."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is of another thread."""
        return record.thread != self._thread


@contextmanager
def quiet() -> Generator[None]:
    """Inside, PyTorch does not log its errors, but where it runs in other threads."""
    others = _Others()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(others)
