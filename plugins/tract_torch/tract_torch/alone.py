"""PyTorch has one program in the making at a time, in one thread, and says nothing of it but what it raises."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final
from unittest.mock import patch

from tract_torch.private import printing_module

LOCK: Final = threading.RLock()
"""Held while a module is changed: put into evaluation mode, given other weights, or exported, for which `torch.export`
puts other tensors in the place of parameters."""

_LOGGERS: Final = ("torch.export", "torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")
"""Which of PyTorch's loggers write the tracebacks of what is raised anyway."""


def _silent(*_: object, **__: object) -> None:
    """In the place of `print`."""


def _without_graphs() -> AbstractContextManager[object]:
    """Inside of it, PyTorch does not print the graph of what it refuses: one module of it has another `print`."""
    module = printing_module()
    return nullcontext() if module is None else patch.object(module, "print", _silent, create=True)


class _Others(logging.Filter):
    """Lets through what other threads say."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is of another thread."""
        return record.thread != self._thread


@contextmanager
def alone() -> Generator[None]:
    """One thread at a time works with programs; what PyTorch says of its errors and deprecated parts is not told."""
    others = _Others()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    with LOCK, warnings.catch_warnings(), _without_graphs():
        warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg|torch")
        for logger in loggers:
            logger.addFilter(others)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeFilter(others)
