"""Objects that can be handed over: each owns something until another object takes it."""

from __future__ import annotations

import sys
from typing import ClassVar, Final, Generic, TypeVar

from tract_core.errors import ConsumedError
from tract_core.plugins.installing import DISTRIBUTIONS

T = TypeVar("T")

_OURS: Final = frozenset(name.replace("-", "_") for name in DISTRIBUTIONS)
"""The packages of this project."""


class Handle(Generic[T]):
    """Owns one thing. Once that was handed over, every use raises ConsumedError, which says who has it now."""

    __slots__ = ("_consumer", "_content")

    _advice: ClassVar[str] = "make another one"
    """What to do instead of using a consumed object."""

    def __init__(self, content: T) -> None:
        self._content: T | None = content
        self._consumer = ""

    @property
    def _held(self) -> T:
        """What it owns. Raises ConsumedError when that was handed over."""
        if self._content is None:
            kind = type(self).__name__
            raise ConsumedError(f"this {kind} was consumed by {self._consumer} and is empty now", hint=self._advice)
        return self._content

    @property
    def is_consumed(self) -> bool:
        """Whether it was handed over."""
        return self._content is None

    def _hand_over(self, to: str) -> T:
        """What it owns, which from now on belongs to ``to``. Raises ConsumedError when that happened before."""
        held = self._held
        self._content, self._consumer = None, f"{to}{_line_of_the_caller()}"
        return held


def _line_of_the_caller() -> str:
    """Where the program calls this project, as ``", in line 7 of classify.py,"``; empty where nothing does."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]: `inspect.stack` reads sources
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame = frame.f_back
    return "" if frame is None else f", in line {frame.f_lineno} of {frame.f_code.co_filename},"
