"""Why a meaning cannot be traced, told with the line of the meaning where that shows."""

from __future__ import annotations

import inspect
import linecache
from pathlib import Path
from typing import Any, Final

import numpy as np

_NOT_THEIRS: Final = (str(Path(__file__).parent), str(Path(np.__file__).parent))
"""Folders whose functions are between a line of a meaning and what it comes to."""


class NotTraced(Exception):
    """A meaning that is left to the host. ``reason``: a sentence about "its meaning", for `explain()`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def line_here() -> str:
    """The line of the meaning that is being called."""
    frame = inspect.currentframe()
    assert frame is not None  # as with any Python that has NumPy
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THEIRS):
        frame = frame.f_back
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip().removesuffix(":")
    return f"`{line}`" if line else f"line {frame.f_lineno} of {frame.f_code.co_name}"


def name_of(function: Any) -> str:
    """What a function is called, with its module."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    module = "numpy" if isinstance(function, np.ufunc) else getattr(function, "__module__", None)
    return name if module in (None, "builtins") else f"{module}.{name}"
