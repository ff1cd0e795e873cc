"""Objects that can be handed over: each owns something until another object takes it."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from tract_core.errors import ConsumedError
from tract_core.plugins.callers import line_of_caller

T = TypeVar("T")


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
        self._content, self._consumer = None, f"{to}{line_of_caller()}"
        return held
