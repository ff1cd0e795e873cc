"""Which line of the user's program a call came from: errors and warnings name it, in place of one of ours."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Final

from tract_core.plugins.distributions import DISTRIBUTIONS

_OURS: Final = frozenset(name.replace("-", "_") for name in DISTRIBUTIONS)
"""The packages of this project."""


def line_of_caller() -> str:
    """As ``", in line 7 of classify.py,"``; empty where nothing but this project is there, as in the command."""
    frame, _ = _outside(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]: `inspect.stack` reads sources
    return "" if frame is None else f", in line {frame.f_lineno} of {frame.f_code.co_filename},"


def level_of_caller() -> int:
    """The ``stacklevel`` with which a warning of the function that asks names the line of the program."""
    _, passed = _outside(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]: the same
    return passed + 1


def _outside(frame: FrameType | None) -> tuple[FrameType | None, int]:
    """The first frame outside of this project, and how many it is behind."""
    passed = 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, passed = frame.f_back, passed + 1
    return frame, passed
